//! Directives that are refused, and random nests by trial.

use expect_test::{Expect, expect};
use kiln::directives::{Known, Program, Schedule, marks};
use kiln::error::Error;
use kiln::prelude::*;
use suite::directives_random::verify_nests;

/// None that is wrong by trial is accepted, and none that is right is refused as wrong.
#[test]
fn random_nests_are_verified_as_by_trial() -> kiln::Result<()> {
    let tally = verify_nests(0x9e37_79b9_7f4a_7c15, 5000)?;
    assert!(tally.accepted > 500 && tally.wrong > 500, "{tally:?}");
    assert!(tally.unproved < 1000 && tally.strict < 500, "{tally:?}");
    Ok(())
}

fn read(region: Result<DeviceFn, Error>) -> Result<Program, Error> {
    Program::of(&region?)
}

/// What is refused of a program on a grid, for arguments.
fn refused(region: Result<DeviceFn, Error>, grid: (&[u32], &[u32]), known: &[Known], want: Expect) {
    let verified = read(region)
        .and_then(|program| Ok(program.verify(&program.schedule(grid.0, grid.1), known)?));
    let error = verified.expect_err("it is wrong").to_string();
    want.assert_eq(&error);
}

/// The arguments of the regions here: a slice of 100 elements, another one, and 100.
const KNOWN: [Known; 3] = [Known::Length(100), Known::Length(100), Known::Number(100)];

/// Regions of one loop or nest, with what is refused of each on a grid.
macro_rules! refused {
    ($($name:ident, $blocks:expr, $threads:expr, |$x:ident, $y:ident, $n:ident| $body:block, $want:expr;)*) => {$(
        #[test]
        fn $name() {
            #[device_fn]
            fn region($x: &mut [u32], $y: &mut [u32], $n: usize) $body
            refused(DeviceFn::of::<region>(), (&$blocks, &$threads), &KNOWN, $want);
        }
    )*};
}

refused! {
    an_earlier_element, [2], [32], |x, _y, n| {
        marks::partition(1, 1);
        for i in 1..n {
            x[i] = x[i - 1] + 1;
        }
    }, expect![[""]];

    a_later_element, [1], [32], |x, _y, n| {
        marks::partition(0, 1);
        for i in 0..n - 7 {
            x[i] = x[i + 7];
        }
    }, expect![[""]];

    one_element_of_all, [4], [1], |x, _y, n| {
        marks::partition(1, 0);
        for i in 0..n {
            x[0] = i as u32;
        }
    }, expect![[""]];

    a_sum_in_a_variable, [4], [32], |x, _y, n| {
        let mut sum = 0;
        marks::partition(1, 1);
        for i in 0..n {
            sum += x[i];
        }
        x[0] = sum;
    }, expect![[""]];

    a_variable_that_an_iteration_finds, [4], [32], |x, _y, n| {
        let mut last = 0;
        marks::partition(1, 1);
        for i in 0..n {
            if i % 2 == 0 {
                last = x[i];
            }
            x[i] = last;
        }
    }, expect![[""]];

    an_array_of_all_iterations, [4], [32], |x, _y, n| {
        let mut counts = [0u32; 4];
        marks::partition(1, 1);
        for i in 0..n {
            counts[i % 4] += 1;
            x[i] = counts[i % 4];
        }
    }, expect![[""]];

    siblings_that_are_distributed_differently, [2], [32], |x, y, n| {
        marks::partition(1, 1);
        for i in 0..n {
            x[i] = i as u32;
        }
        marks::partition(2, 1);
        for i in 0..n {
            y[i] = x[i];
        }
    }, expect![[""]];

    what_all_threads_repeat, [1], [32], |x, _y, n| {
        for i in 0..n {
            x[i] += 1;
        }
    }, expect![[""]];

    no_barrier_behind_singular, [1], [32], |x, y, n| {
        if marks::singular() {
            x[0] = 5;
        }
        marks::partition(0, 1);
        for i in 0..n {
            y[i] = x[0];
        }
    }, expect![[""]];

    a_barrier_is_for_one_block, [2], [32], |x, y, n| {
        marks::partition(1, 1);
        for i in 0..n {
            x[i] = i as u32;
        }
        barrier();
        marks::partition(1, 1);
        for i in 1..n {
            y[i] = x[i - 1];
        }
    }, expect![[""]];

    an_index_out_of_memory, [2], [32], |x, y, n| {
        marks::partition(1, 1);
        for i in 0..n {
            x[y[i] as usize] = 1;
        }
    }, expect![[""]];

    a_product_of_counters, [2], [32], |x, _y, n| {
        marks::partition(1, 1);
        for i in 0..n {
            for j in 0..2usize {
                x[i * i + j] = 1;
            }
        }
    }, expect![[""]];

    a_step_that_meets_again, [1], [32], |x, _y, n| {
        marks::partition(0, 1);
        for i in 0..n / 2 {
            x[2 * i] = 1;
            x[i] = 2;
        }
    }, expect![[""]];

    a_partition_deeper_than_the_grid, [2], [32], |x, _y, n| {
        marks::partition(1, 0);
        for i in 0..10usize {
            marks::partition(1, 1);
            for j in 0..n / 10 {
                x[i * (n / 10) + j] = 1;
            }
        }
    }, expect![[""]];

    threads_deeper_than_the_block, [2], [32], |x, _y, n| {
        marks::partition(1, 1);
        for i in 0..10usize {
            marks::partition(0, 1);
            for j in 0..n / 10 {
                x[i * (n / 10) + j] = 1;
            }
        }
    }, expect![[""]];

    neither_clause, [2], [32], |x, _y, n| {
        marks::partition(0, 0);
        for i in 0..n {
            x[i] = 1;
        }
    }, expect![[""]];

    a_partition_without_a_loop, [2], [32], |x, _y, _n| {
        marks::partition(1, 1);
        x[0] = 1;
    }, expect![[""]];

    a_partition_before_an_if, [2], [32], |x, _y, n| {
        marks::partition(1, 1);
        if n > 5 {
            x[0] = 1;
        }
    }, expect![[""]];

    a_partition_in_singular, [2], [32], |x, _y, n| {
        if marks::singular() {
            marks::partition(0, 1);
            for i in 0..n {
                x[i] = 1;
            }
        }
    }, expect![[""]];

    singular_in_singular, [2], [32], |x, _y, _n| {
        if marks::singular() {
            if marks::singular() {
                x[0] = 1;
            }
        }
    }, expect![[""]];

    singular_in_threads, [2], [32], |x, _y, n| {
        marks::partition(1, 1);
        for i in 0..n {
            if marks::singular() {
                x[i] = 1;
            }
        }
    }, expect![[""]];

    singular_with_else, [2], [32], |x, _y, _n| {
        if marks::singular() {
            x[0] = 1;
        } else {
            x[1] = 1;
        }
    }, expect![[""]];

    a_barrier_in_singular, [2], [32], |x, _y, _n| {
        if marks::singular() {
            x[0] = 1;
            barrier();
        }
    }, expect![[""]];

    a_barrier_in_an_if, [1], [32], |x, _y, n| {
        marks::partition(0, 1);
        for i in 0..n {
            if i > 3 {
                x[i] = 1;
                barrier();
            }
        }
    }, expect![[""]];

    a_barrier_in_a_loop_of_its_own_length, [1], [32], |x, _y, n| {
        marks::partition(0, 1);
        for i in 0..n {
            for _ in 0..i {
                x[i] = 1;
                barrier();
            }
        }
    }, expect![[""]];

    a_barrier_in_a_while_loop, [1], [32], |x, _y, n| {
        let mut i = 0;
        while i < n {
            barrier();
            i += 1;
        }
        x[0] = 1;
    }, expect![[""]];

    a_continue_before_a_barrier, [1], [32], |x, _y, n| {
        marks::partition(0, 1);
        for i in 0..n {
            if i == 5 {
                continue;
            }
            x[i] = 1;
            barrier();
        }
    }, expect![[""]];

    a_break_of_a_distributed_loop, [1], [32], |x, _y, n| {
        marks::partition(0, 1);
        for i in 0..n {
            if i == 50 {
                break;
            }
            x[i] = 1;
        }
    }, expect![[""]];

    a_return_of_a_distributed_loop, [1], [32], |x, _y, n| {
        marks::partition(0, 1);
        for i in 0..n {
            if i == 50 {
                return;
            }
            x[i] = 1;
        }
    }, expect![[""]];

    a_reference_over_a_barrier, [1], [32], |x, _y, n| {
        marks::partition(0, 1);
        for i in 0..n {
            let place = &mut x[i];
            *place = 1;
            barrier();
            *place = 2;
        }
    }, expect![[""]];

    the_place_of_a_thread, [1], [32], |x, _y, n| {
        marks::partition(0, 1);
        for i in 0..n {
            x[i] = thread_idx().x as u32;
        }
    }, expect![[""]];

    an_atomic_whose_result_is_used, [1], [32], |x, y, n| {
        for i in 0..n {
            y[i] = atomic_add(&mut x[i], 1);
        }
    }, expect![[""]];

    an_atomic_that_others_read, [1], [32], |x, y, n| {
        marks::partition(0, 1);
        for i in 0..n {
            atomic_add(&mut x[0], 1);
            y[i] = x[0];
        }
    }, expect![[""]];

    no_dimensions, [], [32], |x, _y, _n| {
        x[0] = 1;
    }, expect![[""]];

    a_dimension_of_nothing, [2], [4, 0], |x, _y, _n| {
        x[0] = 1;
    }, expect![[""]];

    too_many_threads, [2], [33, 32], |x, _y, _n| {
        x[0] = 1;
    }, expect![[""]];

    too_many_blocks, [65536, 65536, 65536], [32], |x, _y, _n| {
        x[0] = 1;
    }, expect![[""]];
}

#[test]
fn what_is_no_region_is_refused() {
    #[device_fn]
    fn gives(x: u32) -> u32 {
        x + 1
    }
    #[device_fn]
    fn generic<T: Num>(x: &mut [T]) {
        x[0] += x[1];
    }
    let gives = read(DeviceFn::of::<gives>()).expect_err("it gives something");
    expect![[""]].assert_eq(&gives.to_string());
    let generic = read(DeviceFn::of::<generic>()).expect_err("it has a type parameter");
    expect![[""]].assert_eq(&generic.to_string());
}

#[test]
fn schedules_are_read_and_refused() -> kiln::Result<()> {
    let refuse = |text: &str, want: Expect| {
        let read: Result<Schedule, _> = text.parse();
        want.assert_eq(&read.expect_err("it is wrong").to_string());
    };
    refuse("grid(2)", expect![[""]]);
    refuse("tblock(2) thread(a)", expect![[""]]);
    refuse("tblock(2) thread(4) loop 1: sequential", expect![[""]]);
    refuse("tblock(2) thread(4) loop 0: over_warp", expect![[""]]);
    #[device_fn]
    fn fill(x: &mut [u32]) {
        for i in 0..4usize {
            x[i] = 1;
        }
    }
    let program = Program::of(&DeviceFn::of::<fill>()?)?;
    let other: Schedule = "tblock(2) thread(4)".parse()?;
    let refused = program.verify(&other, &[]).expect_err("it has no loop");
    expect![[""]].assert_eq(&refused.to_string());
    Ok(())
}

/// A promise of the program is not checked; without it the schedule is refused.
#[test]
fn promised_loops_are_not_checked() -> kiln::Result<()> {
    #[device_fn]
    fn scatter(x: &mut [u32], at: &mut [u32], n: usize) {
        marks::partition(1, 1);
        marks::independent();
        for i in 0..n {
            x[at[i] as usize] = i as u32;
        }
    }
    let program = Program::of(&DeviceFn::of::<scatter>()?)?;
    let mut schedule = program.schedule(&[2], &[32]);
    assert!(
        schedule.to_string().ends_with("over_thread independent"),
        "{schedule}"
    );
    program.verify(&schedule, &KNOWN)?;
    schedule.loops[0].independent = false;
    assert!(program.verify(&schedule, &KNOWN).is_err());
    Ok(())
}

/// A mark that is launched is an error on every device.
#[test]
fn marks_that_are_left_are_errors() -> kiln::Result<()> {
    #[kernel]
    fn marked(x: &mut [u32]) {
        marks::partition(1, 1);
        for i in 0..4usize {
            x[i] = 1;
        }
    }
    let jit = Jit::on(Device::cpu());
    let mut x = jit.zeros::<u32>(4)?;
    let launched = marked
        .launch(&jit, (1, 1), &mut x)
        .and_then(|()| x.to_vec());
    let error = launched.expect_err("it is left").to_string();
    assert!(
        error.contains("a directive's mark is left in the kernel"),
        "{error}"
    );
    let target = kiln::core::target::Target::Ptx(kiln::core::target::PtxTarget::for_sm(90));
    let gpu = Jit::with(
        Device::cpu(),
        kiln::hooks::standard(),
        JitOptions::default().target(target),
    );
    let inspected = gpu
        .inspect(&marked, args!(&x))
        .map(|inspection| inspection.ptx().map(str::to_owned));
    assert!(
        !matches!(inspected, Ok(Ok(_))),
        "a GPU has no such instruction"
    );
    Ok(())
}
