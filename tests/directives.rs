//! Directives that are refused, and random nests by trial.

use expect_test::{Expect, expect};
use kiln::directives::{Known, Program, Schedule, marks};
use kiln::error::Error;
use kiln::prelude::*;
use suite::directives_random::{verify_interchanged, verify_nests, verify_side_by_side};

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
pub fn refused(of: Result<DeviceFn, Error>, on: (&[u32], &[u32]), known: &[Known], want: Expect) {
    let verified =
        read(of).and_then(|program| Ok(program.verify(&program.schedule(on.0, on.1), known)?));
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
    }, expect!["the write at tests/directives.rs:49:13 and the read at tests/directives.rs:49:20 use one element of `x`, in iterations of the loop at tests/directives.rs:48:9 that follow one another, and under `tblock(2) thread(32) loop 0: over_tblock(BLOCK) over_thread` different threads do so in any order: leave that loop sequential, or let its iterations use elements of their own"];

    a_later_element, [1], [32], |x, _y, n| {
        marks::partition(0, 1);
        for i in 0..n - 7 {
            x[i] = x[i + 7];
        }
    }, expect!["the read at tests/directives.rs:56:20 and the write at tests/directives.rs:56:13 use one element of `x`, in iterations of the loop at tests/directives.rs:55:9 that are 7 apart, and under `tblock(1) thread(32) loop 0: over_thread` different threads do so in any order: leave that loop sequential, or let its iterations use elements of their own"];

    one_element_of_all, [4], [1], |x, _y, n| {
        marks::partition(1, 0);
        for i in 0..n {
            x[0] = i as u32;
        }
    }, expect!["the write at tests/directives.rs:63:13 and the write at tests/directives.rs:63:13 use one element of `x`, in iterations of the loop at tests/directives.rs:62:9 that follow one another, and under `tblock(4) thread(1) loop 0: over_tblock(BLOCK)` different threads do so in any order: leave that loop sequential, or let its iterations use elements of their own"];

    a_sum_in_a_variable, [4], [32], |x, _y, n| {
        let mut sum = 0;
        marks::partition(1, 1);
        for i in 0..n {
            sum += x[i];
        }
        x[0] = sum;
    }, expect!["tests/directives.rs:71:13: `sum` is written by iterations of the loop or part at tests/directives.rs:70:9, which different threads execute, and is read by others or behind it: declare it within, or write to an element of a slice"];

    a_variable_that_an_iteration_finds, [4], [32], |x, _y, n| {
        let mut last = 0;
        marks::partition(1, 1);
        for i in 0..n {
            if i % 2 == 0 {
                last = x[i];
            }
            x[i] = last;
        }
    }, expect!["tests/directives.rs:81:17: `last` is written by iterations of the loop or part at tests/directives.rs:79:9, which different threads execute, and is read by others or behind it: declare it within, or write to an element of a slice"];

    an_array_of_all_iterations, [4], [32], |x, _y, n| {
        let mut counts = [0u32; 4];
        marks::partition(1, 1);
        for i in 0..n {
            counts[i % 4] += 1;
            x[i] = counts[i % 4];
        }
    }, expect!["tests/directives.rs:91:13: an array is written by iterations of the loop or part at tests/directives.rs:90:9, which different threads execute, and is read by others or behind it: declare it within, or write to an element of a slice"];

    siblings_that_are_distributed_differently, [2], [32], |x, y, n| {
        marks::partition(1, 1);
        for i in 0..n {
            x[i] = i as u32;
        }
        marks::partition(2, 1);
        for i in 0..n {
            y[i] = x[i];
        }
    }, expect!["the write at tests/directives.rs:99:13 and the read at tests/directives.rs:103:20 use one element of `x`, in one iteration, and under `tblock(2) thread(32) loop 0: over_tblock(BLOCK) over_thread; loop 1: over_tblock(CYCLIC) over_thread` different threads do so in any order: put a `barrier` between them if they are of one block, distribute the loops around them alike, or let one thread of each block do it by `singular`"];

    what_all_threads_repeat, [1], [32], |x, _y, n| {
        for i in 0..n {
            x[i] += 1;
        }
    }, expect!["the read at tests/directives.rs:109:13 and the write at tests/directives.rs:109:13 use one element of `x`, in one iteration, and under `tblock(1) thread(32) loop 0: sequential` different threads do so in any order: put a `barrier` between them if they are of one block, distribute the loops around them alike, or let one thread of each block do it by `singular`"];

    no_barrier_behind_singular, [1], [32], |x, y, n| {
        if marks::singular() {
            x[0] = 5;
        }
        marks::partition(0, 1);
        for i in 0..n {
            y[i] = x[0];
        }
    }, expect!["the write at tests/directives.rs:115:13 and the read at tests/directives.rs:119:20 use one element of `x`, in one iteration, and under `tblock(1) thread(32) loop 0: over_thread` different threads do so in any order: put a `barrier` between them if they are of one block, distribute the loops around them alike, or let one thread of each block do it by `singular`"];

    a_barrier_is_for_one_block, [2], [32], |x, y, n| {
        marks::partition(1, 1);
        for i in 0..n {
            x[i] = i as u32;
        }
        barrier();
        marks::partition(1, 1);
        for i in 0..n {
            y[i] = x[n - 1 - i];
        }
    }, expect!["the write at tests/directives.rs:126:13 and the read at tests/directives.rs:131:20 use one element of `x`, in one iteration, and under `tblock(2) thread(32) loop 0: over_tblock(BLOCK) over_thread; loop 1: over_tblock(BLOCK) over_thread` different threads do so in any order: put a `barrier` between them if they are of one block, distribute the loops around them alike, or let one thread of each block do it by `singular`"];

    an_index_out_of_memory, [2], [32], |x, y, n| {
        marks::partition(1, 1);
        for i in 0..n {
            x[y[i] as usize] = 1;
        }
    }, expect!["cannot prove that the write at tests/directives.rs:138:13 and the write at tests/directives.rs:138:13 do not depend on each other through `x` when different threads execute them: an index, a bound of a loop around or a condition around (also that of `continue`) is not of sums of the loops' counters times numbers, or the blocks' shares change from turn to turn; write it so, or promise by `unsafe(independent)` what is so"];

    a_product_of_counters, [2], [32], |x, _y, n| {
        marks::partition(1, 1);
        for i in 0..n {
            for j in 0..2usize {
                x[i * i + j] = 1;
            }
        }
    }, expect!["cannot prove that the write at tests/directives.rs:146:17 and the write at tests/directives.rs:146:17 do not depend on each other through `x` when different threads execute them: an index, a bound of a loop around or a condition around (also that of `continue`) is not of sums of the loops' counters times numbers, or the blocks' shares change from turn to turn; write it so, or promise by `unsafe(independent)` what is so"];

    a_step_that_meets_again, [1], [32], |x, _y, n| {
        marks::partition(0, 1);
        for i in 0..n / 2 {
            x[2 * i] = 1;
            x[i] = 2;
        }
    }, expect!["the write at tests/directives.rs:154:13 and the write at tests/directives.rs:155:13 use one element of `x`, in iterations of the loop at tests/directives.rs:153:9 that follow one another, and under `tblock(1) thread(32) loop 0: over_thread` different threads do so in any order: leave that loop sequential, or let its iterations use elements of their own"];

    a_partition_deeper_than_the_grid, [2], [32], |x, _y, n| {
        marks::partition(1, 0);
        for i in 0..10usize {
            marks::partition(1, 1);
            for j in 0..n / 10 {
                x[i * (n / 10) + j] = 1;
            }
        }
    }, expect!["tests/directives.rs:163:13: the loop is number 2 of its nest that is distributed over blocks, and `tblock` has 1 of them: give it 2 or take the clause away"];

    threads_deeper_than_the_block, [2], [32], |x, _y, n| {
        marks::partition(1, 1);
        for i in 0..10usize {
            marks::partition(0, 1);
            for j in 0..n / 10 {
                x[i * (n / 10) + j] = 1;
            }
        }
    }, expect!["tests/directives.rs:173:13: the loop is number 2 of its nest that is distributed over threads, and `thread` has 1 of them: give it 2 or take the clause away"];

    neither_clause, [2], [32], |x, _y, n| {
        marks::partition(0, 0);
        for i in 0..n {
            x[i] = 1;
        }
    }, expect!["tests/directives.rs:180:9: `loop_partition` has no clause: write `over_tblock`, one of `over_thread`, `over_warp` and `over_lane`, or both"];

    a_partition_without_a_loop, [2], [32], |x, _y, _n| {
        marks::partition(1, 1);
        x[0] = 1;
    }, expect!["tests/directives.rs:187:9: the directive is for a `for` loop, and none follows it; let the bounds of the loop be variables where they are computed by `if` or by loops"];

    a_partition_before_an_if, [2], [32], |x, _y, n| {
        marks::partition(1, 1);
        if n > 5 {
            x[0] = 1;
        }
    }, expect!["tests/directives.rs:192:9: the directive is for a `for` loop, and none follows it; let the bounds of the loop be variables where they are computed by `if` or by loops"];

    a_partition_in_singular, [2], [32], |x, _y, n| {
        if marks::singular() {
            marks::partition(0, 1);
            for i in 0..n {
                x[i] = 1;
            }
        }
    }, expect!["tests/directives.rs:201:13: `loop_partition` within `singular`, which one thread of the block executes: take one of them away"];

    singular_in_singular, [2], [32], |x, _y, _n| {
        if marks::singular() {
            x[1] = 1;
            x[2] = 1;
            if marks::singular() { x[0] = 1; }
        }
    }, expect!["tests/directives.rs:211:13: `singular` within `singular`: one of them is enough"];

    singular_in_threads, [2], [32], |x, _y, n| {
        marks::partition(1, 1);
        for i in 0..n {
            if marks::singular() {
                x[i] = 1;
            }
        }
    }, expect!["tests/directives.rs:218:13: `singular` within a loop over threads, of whose iterations the first thread has some only: put it outside of the loop, or take the clause for threads away"];

    singular_with_else, [2], [32], |x, _y, _n| {
        if marks::singular() {
            x[0] = 1;
        } else {
            x[1] = 1;
        }
    }, expect!["tests/directives.rs:225:9: the mark of `singular` is the condition of an `if` without `else`"];

    a_barrier_in_singular, [2], [32], |x, _y, _n| {
        if marks::singular() {
            x[0] = 1;
            barrier();
        }
    }, expect!["tests/directives.rs:235:13: a barrier in `singular`, which one thread of the block executes: put it behind"];

    a_barrier_in_an_if, [1], [32], |x, _y, n| {
        marks::partition(0, 1);
        for i in 0..n {
            if i > 3 {
                x[i] = 1;
                barrier();
            }
        }
    }, expect!["tests/directives.rs:242:13: a barrier, or a loop that stages slices, in an `if` whose condition threads of a block may have different: put it outside of it"];

    a_barrier_in_a_loop_of_its_own_length, [1], [32], |x, _y, n| {
        marks::partition(0, 1);
        for i in 0..n {
            for _ in 0..i {
                x[i] = 1;
                barrier();
            }
        }
    }, expect!["tests/directives.rs:252:13: a barrier, or a loop that stages slices, in a loop whose bounds threads of a block may have different: let them be the same for all iterations of loops over threads"];

    a_barrier_in_a_while_loop, [1], [32], |x, _y, n| {
        let mut i = 0;
        while i < n {
            barrier();
            i += 1;
        }
        x[0] = 1;
    }, expect!["tests/directives.rs:261:9: a barrier, or a loop that stages slices, in a loop that is no `for`, which threads may leave in different turns: count its turns by a `for`"];

    a_continue_before_a_barrier, [1], [32], |x, _y, n| {
        marks::partition(0, 1);
        for i in 0..n {
            if i == 5 {
                continue;
            }
            x[i] = 1;
            barrier();
        }
    }, expect!["tests/directives.rs:272:17: a loop with a barrier in it, or that stages slices, is left here, and all threads of the block come to the barrier: put what follows into an `if`, and the barrier outside of it"];

    a_break_of_a_distributed_loop, [1], [32], |x, _y, n| {
        marks::partition(0, 1);
        for i in 0..n {
            if i == 50 {
                break;
            }
            x[i] = 1;
        }
    }, expect!["tests/directives.rs:283:17: `break` ends a loop that is distributed, whose later iterations other threads execute: take the clauses away, or test in each iteration whether there is something to do"];

    a_return_of_a_distributed_loop, [1], [32], |x, _y, n| {
        marks::partition(0, 1);
        for i in 0..n {
            if i == 50 {
                return;
            }
            x[i] = 1;
        }
    }, expect!["tests/directives.rs:293:17: `return` ends the region for one thread, and in the sequential program for all that comes after: put what follows into an `if`"];

    a_reference_over_a_barrier, [1], [32], |x, _y, n| {
        marks::partition(0, 1);
        for i in 0..n {
            let place = &mut x[i];
            *place = 1;
            barrier();
            *place = 2;
        }
    }, expect!["tests/directives.rs:302:30: a reference or slice is made before a barrier in the loop and used behind it: make it again behind the barrier"];

    the_place_of_a_thread, [1], [32], |x, _y, n| {
        marks::partition(0, 1);
        for i in 0..n {
            x[i] = thread_idx().x as u32;
        }
    }, expect!["tests/directives.rs:312:20: a region is a sequential program, and has no thread that knows its place: use directives, or write a `#[kernel]`"];

    an_atomic_whose_result_is_used, [1], [32], |x, y, n| {
        for i in 0..n {
            y[i] = atomic_add(&mut x[i], 1);
        }
    }, expect!["tests/directives.rs:318:20: the result of what is done to memory here is used, and several threads execute it for one iteration of the program, as no loop around it is distributed over all dimensions of the grid: put it into `singular`, or distribute a loop around it"];

    an_atomic_that_others_read, [1], [32], |x, y, n| {
        marks::partition(0, 1);
        for i in 0..n {
            atomic_add(&mut x[0], 1);
            y[i] = x[0];
        }
    }, expect!["the atomic operation at tests/directives.rs:325:13 and the atomic operation at tests/directives.rs:325:13 use one element of `x`, in iterations of the loop at tests/directives.rs:324:9 that follow one another, and under `tblock(1) thread(32) loop 0: over_thread` different threads do so in any order: leave that loop sequential, or let its iterations use elements of their own"];

    a_reference_to_one_of_two, [1], [32], |x, _y, n| {
        let (mut a, mut b) = (1, 2);
        let one = if n > 5 { &mut a } else { &mut b };
        *one = 5;
        x[0] = a + b;
    }, expect!["tests/directives.rs:333:9: cannot prove that threads do not depend on each other: a write to memory that is no slice of the region's own parameters, or one of several"];

    memory_of_the_block, [1], [32], |x, _y, n| {
        let tile = shared!([u32; 32]);
        marks::partition(0, 1);
        for i in 0..n {
            tile[i % 32] = 1;
            x[i] = tile[i % 32];
        }
    }, expect!["tests/directives.rs:338:20: memory of the block is a variable of the region: declare it by `#[shared] let mut a: [f32; 64] = [0.0; 64];`, or assign all of it where it is declared, before it is used"];

    no_dimensions, [], [32], |x, _y, _n| {
        x[0] = 1;
    }, expect!["tblock(): a grid has one dimension or more, each of at least 1"];

    a_dimension_of_nothing, [2], [4, 0], |x, _y, _n| {
        x[0] = 1;
    }, expect!["thread(4, 0): a grid has one dimension or more, each of at least 1"];

    too_many_threads, [2], [33, 32], |x, _y, _n| {
        x[0] = 1;
    }, expect!["thread(33, 32): these are 1056 in all, and at most 1024 are launched: choose smaller dimensions, a loop takes any number of turns"];

    too_many_blocks, [65536, 65536, 65536], [32], |x, _y, _n| {
        x[0] = 1;
    }, expect!["tblock(65536, 65536, 65536): these are 281474976710656 in all, and at most 2147483647 are launched: choose smaller dimensions, a loop takes any number of turns"];
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
    expect!["`gives` is no region: a region is a function without a result and without type and const parameters"].assert_eq(&gives.to_string());
    let generic = read(DeviceFn::of::<generic>()).expect_err("it has a type parameter");
    expect!["`generic` is no region: a region is a function without a result and without type and const parameters"].assert_eq(&generic.to_string());
}

#[test]
fn schedules_are_read_and_refused() -> kiln::Result<()> {
    let refuse = |text: &str, want: Expect| {
        let read: Result<Schedule, _> = text.parse();
        want.assert_eq(&read.expect_err("it is wrong").to_string());
    };
    refuse(
        "grid(2)",
        expect![
            "the schedule says `grid(2)` where `tblock(..) thread(..)` at its start should stand"
        ],
    );
    refuse(
        "tblock(2) thread(a)",
        expect!["the schedule says `a` where numbers with commas between should stand"],
    );
    refuse(
        "tblock(2) thread(4) loop 1: sequential",
        expect![
            "the schedule says `loop 1: sequential` where the loops in order, `loop 0: ..; loop 1: ..` should stand"
        ],
    );
    refuse(
        "tblock(2) thread(4) loop 0: over_cluster",
        expect![
            "the schedule says `over_cluster` where `over_tblock(BLOCK)`, `over_tblock(CYCLIC)`, `over_thread`, `over_warp`, `over_lane`, `independent`, `shared(0,1)`, `whole(1)`, `compute(1)`, `copyout(1)`, `reduction(2)`, `privatize(3)`, `scan`, `nopad`, `interchange`, `peel_first(1)`, `peel_last(1)`, `tile(16)`, `unroll_and_jam(4)`, `unroll`, `unroll(4)`, `unroll(never)` or `sequential` should stand"
        ],
    );
    #[device_fn]
    fn fill(x: &mut [u32]) {
        for i in 0..4usize {
            x[i] = 1;
        }
    }
    let program = Program::of(&DeviceFn::of::<fill>()?)?;
    let other: Schedule = "tblock(2) thread(4)".parse()?;
    let refused = program.verify(&other, &[]).expect_err("it has no loop");
    expect!["the schedule has 0 loops and `fill` has 1; `Program::schedule` gives one that fits"]
        .assert_eq(&refused.to_string());
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

refused! {
    a_staged_slice_that_is_written, [2], [32], |x, y, n| {
        marks::partition(1, 1);
        marks::shared(x.len() as u32);
        for i in 0..n {
            y[i] = x[i];
            x[i] = 1;
        }
    }, expect!["tests/directives.rs:486:13: `x` cannot be staged in shared memory: the region writes it, and what is in shared memory would be the old elements: stage slices that the region only reads"];

    a_staged_slice_of_which_nothing_is_read, [2], [32], |x, y, n| {
        marks::partition(1, 1);
        marks::shared(x.len() as u32);
        for i in 0..n {
            y[i] = 1;
        }
    }, expect!["tests/directives.rs:493:9: `x` cannot be staged in shared memory: nothing in the loop reads an element of it: take it out of the clause"];

    a_slice_that_is_staged_twice, [2], [32], |x, y, n| {
        marks::partition(1, 1);
        marks::shared(x.len() as u32);
        for i in 0..n / 2 {
            let mut sum = 0;
            marks::shared(x.len() as u32);
            for j in 0..2usize {
                sum += x[2 * i + j];
            }
            y[i] = sum;
        }
    }, expect!["tests/directives.rs:504:13: `x` cannot be staged in shared memory: a loop around stages it, too: take it out of one of the clauses"];

    a_staged_index_out_of_memory, [2], [32], |x, y, n| {
        marks::partition(1, 1);
        marks::shared(x.len() as u32);
        for i in 0..n {
            y[2 * i] = x[y[2 * i + 1] as usize];
        }
    }, expect!["tests/directives.rs:515:24: `x` cannot be staged in shared memory: an index of it is not a sum of the loops' counters times numbers: stage slices whose indices are, and let `Program::apply_for` know the numbers of the launch"];

    a_staged_quotient, [2], [32], |x, y, n| {
        marks::partition(1, 1);
        marks::shared(x.len() as u32);
        for i in 0..n {
            y[i] = x[i / 4];
        }
    }, expect!["tests/directives.rs:523:20: `x` cannot be staged in shared memory: an index of it is not a sum of the loops' counters times numbers: stage slices whose indices are, and let `Program::apply_for` know the numbers of the launch"];

    a_staged_element_that_is_not_read_whole, [2], [32], |x, y, n| {
        marks::partition(1, 1);
        marks::shared(x.len() as u32);
        for i in 0..n {
            y[i] = atomic_load(&x[i], Ordering::Relaxed, Scope::Device);
        }
    }, expect!["tests/directives.rs:531:20: `x` cannot be staged in shared memory: it is read here by something else than `x[i]`, as a field or a part of it is: read whole elements"];

    more_than_a_block_has, [1], [32], |x, y, n| {
        marks::shared(x.len() as u32);
        for i in 0..n {
            marks::partition(0, 1);
            for j in 0..20_000usize {
                y[i * 20_000 + j] = x[j];
            }
        }
    }, expect!["tests/directives.rs:537:9: `x` cannot be staged in shared memory: the elements of it that a block reads in one turn are too many for shared memory: stage in a loop with fewer of them, of parts of the loop, or give the block fewer threads"];

    more_than_a_block_has_in_all, [1], [32], |x, y, n| {
        marks::partition(0, 1);
        for i in 0..n {
            let mut sum = 0;
            marks::shared(x.len() as u32);
            for part in 0..2usize {
                for j in 0..9_000usize {
                    sum += x[j + part] + x[2 * j + 5 * part];
                }
            }
            y[i] = sum;
        }
    }, expect!["tests/directives.rs:550:13: `x` cannot be staged in shared memory: what the region stages before it leaves too little of shared memory, of which there are 48 KiB: stage fewer slices, or smaller parts"];

    blocks_within_what_is_staged, [2], [32], |x, y, n| {
        marks::shared(x.len() as u32);
        for i in 0..2usize {
            marks::partition(1, 1);
            for j in 0..n / 2 {
                y[i * (n / 2) + j] = x[j];
            }
        }
    }, expect!["tests/directives.rs:564:38: `x` cannot be staged in shared memory: a loop within the one that stages it is distributed over blocks, of which each has a part: stage it in that one"];

    staged_for_one_thread, [2], [32], |x, y, n| {
        if marks::singular() {
            marks::shared(x.len() as u32);
            for i in 0..n {
                y[i] = x[i];
            }
        }
    }, expect!["tests/directives.rs:573:24: `x` cannot be staged in shared memory: one thread of the block executes the loop, and shares nothing with others: take the clause away"];

    a_barrier_by_an_inner_counter, [1, 1], [4, 8], |x, _y, n| {
        marks::partition(0, 1);
        for i in 0..2usize {
            marks::partition(0, 1);
            for j in 0..n / 2 {
                if j > 3 {
                    x[i * (n / 2) + j] = 1;
                    barrier();
                }
            }
        }
    }, expect!["tests/directives.rs:583:17: a barrier, or a loop that stages slices, in an `if` whose condition threads of a block may have different: put it outside of it"];

    staged_where_not_all_threads_come, [1], [32], |x, y, n| {
        marks::partition(0, 1);
        for i in 0..n {
            let mut sum = 0;
            if i > 3 {
                marks::shared(x.len() as u32);
                for j in 0..4usize {
                    sum += x[j];
                }
            }
            y[i] = sum;
        }
    }, expect!["tests/directives.rs:595:13: a barrier, or a loop that stages slices, in an `if` whose condition threads of a block may have different: put it outside of it"];

    a_part_of_a_slice_that_is_staged, [1], [32], |x, y, n| {
        let part = &x[2..10];
        marks::shared(part.len() as u32);
        for i in 0..n {
            y[i] = part[i % 8];
        }
    }, expect!["tests/directives.rs:607:9: `shared`, `reduction` and `privatize` take slices that are parameters of the region: name the slice itself, not a part of it"];

    staged_without_a_loop, [1], [32], |x, y, _n| {
        marks::shared(x.len() as u32);
        y[0] = x[0];
    }, expect!["tests/directives.rs:614:9: the directive is for a `for` loop, and none follows it; let the bounds of the loop be variables where they are computed by `if` or by loops"];
}

/// Slices that schedules name by numbers which no mark has.
#[test]
fn slices_of_schedules_are_those_of_the_program() -> kiln::Result<()> {
    #[device_fn]
    fn copy(x: &[u32], y: &mut [u32]) {
        for i in 0..4usize {
            y[i] = x[i];
        }
    }
    let program = Program::of(&DeviceFn::of::<copy>()?)?;
    let schedule: Schedule = "tblock(1) thread(4) loop 0: over_thread shared(0)".parse()?;
    program.verify(&schedule, &KNOWN)?;
    assert_eq!(schedule.to_string().parse(), Ok(schedule));
    let other: Schedule = "tblock(1) thread(4) loop 0: over_thread shared(0,7)".parse()?;
    let refused = program.verify(&other, &KNOWN).expect_err("there is none");
    expect!["tests/directives.rs:624:9: `7` cannot be staged in shared memory: the region has no such parameter"].assert_eq(&refused.to_string());
    let parsed: Result<Schedule, _> = "tblock(1) thread(4) loop 0: shared(64)".parse();
    expect!["the schedule says `shared(64)` where `over_tblock(BLOCK)`, `over_tblock(CYCLIC)`, `over_thread`, `over_warp`, `over_lane`, `independent`, `shared(0,1)`, `whole(1)`, `compute(1)`, `copyout(1)`, `reduction(2)`, `privatize(3)`, `scan`, `nopad`, `interchange`, `peel_first(1)`, `peel_last(1)`, `tile(16)`, `unroll_and_jam(4)`, `unroll`, `unroll(4)`, `unroll(never)` or `sequential` should stand"].assert_eq(&parsed.expect_err("it is too large").to_string());
    let many = DeviceFn::build("many", |k| {
        let slices: Vec<_> = (0..65)
            .map(|number| k.slice(&format!("x{number}"), Type::U32))
            .collect();
        marks::shared::build(k, slices[64].len());
        k.for_loop(0u32, 4u32, 1u32, Unroll::Auto, |_| {});
    });
    let refused = read(many).expect_err("it has too many").to_string();
    expect!["tests/directives.rs:641:9: `shared`, `reduction` and `privatize` take the first 64 parameters of a region: let the slice come before others"].assert_eq(&refused);
    Ok(())
}

/// Iterations side by side, as by trial.
#[test]
fn iterations_side_by_side_are_verified_as_by_trial() -> kiln::Result<()> {
    let tally = verify_side_by_side(0x6a09_e667_f3bc_c909, 5000)?;
    assert!(tally.accepted > 100 && tally.wrong > 100, "{tally:?}");
    assert!(tally.unproved < 100, "{tally:?}");
    Ok(())
}

refused! {
    side_by_side_and_dependent, [1], [1], |x, _y, n| {
        marks::jam(4);
        for i in 0..n - 3 {
            x[i + 3] = x[i] + 1;
        }
    }, expect!["the write at tests/directives.rs:662:13 and the read at tests/directives.rs:662:24 use one element of `x`, in iterations of the loop at tests/directives.rs:661:9 that are 3 apart, and under `tblock(1) thread(1) loop 0: sequential unroll_and_jam(4)` these are executed side by side: let fewer of its iterations be side by side, or use elements of their own"];

    side_by_side_of_one_thread, [1], [8], |x, _y, n| {
        marks::partition(0, 1);
        marks::jam(2);
        for i in 0..n - 8 {
            x[i + 8] = x[i] + 1;
        }
    }, expect!["the write at tests/directives.rs:670:13 and the read at tests/directives.rs:670:24 use one element of `x`, in iterations of the loop at tests/directives.rs:669:9 that are 8 apart, and under `tblock(1) thread(8) loop 0: over_thread unroll_and_jam(2)` these are executed side by side: let fewer of its iterations be side by side, or use elements of their own"];

    an_inner_loop_that_is_jammed, [1], [1], |x, _y, _n| {
        marks::jam(2);
        for i in 1..9usize {
            for j in 0..9usize {
                x[i * 10 + j] = x[i * 10 + j + 1 - 10];
            }
        }
    }, expect!["the write at tests/directives.rs:678:17 and the read at tests/directives.rs:678:33 use one element of `x`, in iterations of the loop at tests/directives.rs:676:9 that follow one another, and under `tblock(1) thread(1) loop 0: sequential unroll_and_jam(2); loop 1: sequential` these are executed side by side: let fewer of its iterations be side by side, or use elements of their own"];

    side_by_side_and_not_known, [1], [1], |x, y, n| {
        marks::jam(2);
        for i in 0..n {
            x[y[i] as usize] = 1;
        }
    }, expect!["cannot prove that the write at tests/directives.rs:686:13 and the write at tests/directives.rs:686:13 do not depend on each other through `x` when iterations are executed side by side: an index, a bound of a loop around or a condition around (also that of `continue`) is not of sums of the loops' counters times numbers, or the blocks' shares change from turn to turn; write it so, or promise by `unsafe(independent)` what is so"];

    a_sum_side_by_side, [1], [1], |x, y, n| {
        let mut sum = 0;
        marks::jam(2);
        for i in 0..n {
            sum += x[i];
        }
        y[0] = sum;
    }, expect!["tests/directives.rs:694:13: `sum` is written by iterations of the loop or part at tests/directives.rs:693:9, which are executed side by side, and is read by others or behind it: declare it within, or write to an element of a slice"];

    an_iteration_side_by_side_that_ends, [1], [8], |x, y, n| {
        marks::partition(0, 1);
        marks::jam(2);
        for i in 0..n {
            if x[i] > 5 {
                continue;
            }
            y[i] = 1;
        }
    }, expect!["tests/directives.rs:703:13: `unroll_and_jam(2)` cannot be done: `continue`, `break` or `return` ends an iteration, and others are executed beside it: put what follows into an `if`"];

    a_barrier_that_is_not_the_same_side_by_side, [1], [8], |x, y, n| {
        marks::jam(2);
        for i in 0..n / 10 {
            for j in 0..i {
                marks::partition(0, 1);
                for k in 0..10usize {
                    y[i * 10 + k] = x[k] + j as u32;
                }
                barrier();
            }
        }
    }, expect!["tests/directives.rs:713:13: `unroll_and_jam(2)` cannot be done: a barrier, or a loop that stages slices, is in a loop or `if` that is not the same for iterations side by side: let its bounds or condition be the same for all"];

    tiles_of_a_loop_of_any_step, [1], [8], |x, _y, n| {
        marks::tile(4);
        for i in (0..n).step_by(n / 10) {
            x[i] = 1;
        }
    }, expect!["tests/directives.rs:725:9: `tile(4)` cannot be done: the loop does not count up by a literal: write it so that it does"];

    tiles_of_a_loop_that_ends, [1], [1], |x, y, n| {
        marks::tile(4);
        for i in 0..n {
            if x[i] > 5 {
                break;
            }
            y[i] = 1;
        }
    }, expect!["tests/directives.rs:732:9: `tile(4)` cannot be done: `break`, or the end of a loop around, is in the loop: test in each iteration whether there is something to do"];

    tiles_beyond_the_type, [1], [1], |x, _y, _n| {
        marks::tile(200);
        for i in 0..100i8 {
            x[i as usize] = 1;
        }
    }, expect!["tests/directives.rs:742:9: `tile(200)` cannot be done: a step from tile to tile is no number of the index's type: choose smaller tiles"];

    tiles_of_nothing, [1], [1], |x, _y, n| {
        marks::tile(0);
        for i in 0..n {
            x[i] = 1;
        }
    }, expect!["tests/directives.rs:749:9: `tile(0)` cannot be done: a tile has from 1 to 65536 iterations"];

    too_many_side_by_side, [1], [1], |x, _y, n| {
        marks::jam(65);
        for i in 0..n {
            x[i] = 1;
        }
    }, expect!["tests/directives.rs:756:9: `unroll_and_jam(65)` cannot be done: from 1 to 64 iterations are executed side by side, each of which is written out"];

    too_long_a_body, [1], [1], |x, _y, n| {
        marks::unroll(1025);
        for i in 0..n {
            x[i] = 1;
        }
    }, expect!["tests/directives.rs:763:9: `unroll(1025)` cannot be done: a body is written from 1 to 1024 times"];
}

/// A loop that is said to be transformed twice, and the clauses of schedules.
#[test]
fn transformations_have_texts() -> kiln::Result<()> {
    #[device_fn]
    fn twice(x: &mut [u32]) {
        marks::jam(2);
        marks::jam(4);
        for i in 0..4usize {
            x[i] = 1;
        }
    }
    let refused = read(DeviceFn::of::<twice>()).expect_err("it is there twice");
    expect!["tests/directives.rs:775:9: the loop is transformed so twice (`coarsen` is `unroll_and_jam` of a loop over threads): take one of them away"].assert_eq(&refused.to_string());
    for clauses in [
        "tile(16) unroll_and_jam(4) unroll(8)",
        "unroll",
        "unroll(never)",
    ] {
        let text = format!("tblock(1) thread(4) loop 0: over_thread {clauses}");
        let schedule: Schedule = text.parse()?;
        assert_eq!(schedule.to_string(), text);
    }
    let wrong: Result<Schedule, _> = "tblock(1) thread(4) loop 0: tile(x)".parse();
    assert!(wrong.is_err());
    Ok(())
}

/// The code of iterations side by side: one loop for all of them, and one for those that are left.
#[test]
fn loops_within_are_executed_once_for_all() -> kiln::Result<()> {
    #[device_fn]
    fn rows(x: &mut [u32], y: &mut [u32], n: usize) {
        marks::partition(1, 1);
        marks::jam(3);
        for i in 0..n {
            let mut sum = 0;
            for j in 0..n {
                sum += y[i * n + j];
            }
            x[i] = sum;
        }
    }
    let program = Program::of(&DeviceFn::of::<rows>()?)?;
    let mut schedule = program.schedule(&[2], &[8]);
    let text = |schedule: &Schedule| Ok::<_, Error>(program.apply(schedule)?.module().to_string());
    let count = |text: &str, what: &str| text.matches(what).count();
    let jammed = text(&schedule)?;
    // Groups and the loop over `j` in them.
    assert_eq!(count(&jammed, " for "), 2, "{jammed}");
    schedule.loops[0].jam = None;
    let plain = text(&schedule)?;
    assert_eq!(count(&plain, " for "), 2, "{plain}");
    assert_eq!(
        count(&jammed, "store %"),
        3 * count(&plain, "store %"),
        "{jammed}"
    );
    schedule.loops[0].tile = Some(4);
    let tiled = text(&schedule)?;
    // From tile to tile; in a whole one and in the last one, and the loop over `j` in each.
    assert_eq!(count(&tiled, " for "), 5, "{tiled}");
    Ok(())
}

/// The code of tiles of iterations side by side in loops that end within a tile: each element is written out for whole
/// tiles and once more for the one that is shorter, and not again for groups that are not full.
#[test]
fn elements_at_the_edge_are_written_out_once() -> kiln::Result<()> {
    #[device_fn]
    fn product(x: &mut [u32], y: &mut [u32], n: usize) {
        marks::partition(1, 1);
        marks::jam(8);
        for i in 0..n {
            marks::partition(1, 1);
            marks::jam(8);
            for j in 0..n {
                let mut sum = 0;
                marks::shared(y.len() as u32);
                marks::tile(4);
                for k in 0..n {
                    sum ^= y[i * n + k] + y[k * n + j];
                }
                x[i * n + j] = sum;
            }
        }
    }
    let program = Program::of(&DeviceFn::of::<product>()?)?;
    let schedule = program.schedule(&[2, 2], &[4, 4]);
    let elements = |n: u64| -> kiln::Result<usize> {
        let known = [
            Known::Length(n * n),
            Known::Length(n * n),
            Known::Number(n.into()),
        ];
        let text = program.apply_for(&schedule, &known)?.module().to_string();
        Ok(text.matches(": u32 = xor").count())
    };
    let (whole, edge) = (elements(64)?, elements(61)?);
    expect!["64 128"].assert_eq(&format!("{whole} {edge}"));
    Ok(())
}

/// At an edge, all copies compute and a guard is around the store alone, as is one around what is read of a slice that
/// the region writes; without a loop within, or with such a part of it, there is a loop for the iterations that are left.
#[test]
fn guards_at_the_edge_are_around_what_is_seen() -> kiln::Result<()> {
    #[device_fn]
    fn rows(x: &mut [u32], y: &mut [u32], n: usize) {
        marks::partition(1, 1);
        marks::jam(4);
        for i in 0..n {
            let mut sum = x[i];
            for j in 0..n {
                sum += y[i * n + j];
            }
            x[i] = sum;
        }
    }
    #[device_fn]
    fn scaled(x: &mut [u32], y: &mut [u32], n: usize) {
        marks::partition(1, 1);
        marks::jam(4);
        for i in 0..n {
            x[i] = 3 * y[i];
        }
    }
    #[device_fn]
    fn in_place(x: &mut [u32], y: &mut [u32], n: usize) {
        marks::partition(1, 1);
        marks::jam(4);
        for i in 0..n {
            for j in 0..n {
                x[i] += y[i * n + j];
            }
        }
    }
    let loops_and_stores = |region: DeviceFn, known: &[Known]| -> kiln::Result<String> {
        let program = Program::of(&region)?;
        let schedule = program.schedule(&[2], &[8]);
        let text = program.apply_for(&schedule, known)?.module().to_string();
        let count = |what: &str| text.matches(what).count();
        Ok(format!(
            "{} loops, {} stores, {} ifs",
            count("for %"),
            count("store "),
            count("if %")
        ))
    };
    let mut found = Vec::new();
    for region in [
        DeviceFn::of::<rows>()?,
        DeviceFn::of::<scaled>()?,
        DeviceFn::of::<in_place>()?,
    ] {
        // A thread has a group or more, and one at most.
        for known in [
            &[][..],
            &KNOWN[..1],
            &[Known::Nothing, Known::Nothing, Known::Number(50)],
        ] {
            found.push(loops_and_stores(region.clone(), known)?);
        }
    }
    expect![[r#"
        2 loops, 4 stores, 6 ifs
        2 loops, 4 stores, 6 ifs
        1 loops, 4 stores, 7 ifs
        2 loops, 5 stores, 0 ifs
        2 loops, 5 stores, 0 ifs
        1 loops, 5 stores, 1 ifs
        4 loops, 5 stores, 0 ifs
        4 loops, 5 stores, 0 ifs
        3 loops, 5 stores, 1 ifs"#]]
    .assert_eq(&found.join("\n"));
    Ok(())
}

refused! {
    a_reduced_slice_that_is_read, [2], [32], |x, y, n| {
        marks::partition(1, 1);
        marks::reduction(x.len() as u32);
        for i in 0..n {
            x[i % 5] += 1;
            y[i] = x[0];
        }
    }, expect!["tests/directives.rs:952:20: `x` cannot be reduced: it is used here otherwise than by `x[i] += v`, or `&=`, `|=`, `^=`, or `x[i] = x[i].min(v)` or `max` of integers, with one of them for all of the loop: write it so, or take it out of the clause"];

    two_operations_of_one_reduction, [2], [32], |x, y, n| {
        marks::partition(1, 1);
        marks::reduction(x.len() as u32);
        for i in 0..n {
            x[i % 5] += y[i];
            x[0] |= y[i];
        }
    }, expect!["tests/directives.rs:961:13: `x` cannot be reduced: it is used here otherwise than by `x[i] += v`, or `&=`, `|=`, `^=`, or `x[i] = x[i].min(v)` or `max` of integers, with one of them for all of the loop: write it so, or take it out of the clause"];

    a_difference_that_is_reduced, [2], [32], |x, y, n| {
        marks::partition(1, 1);
        marks::reduction(x.len() as u32);
        for i in 0..n {
            x[i % 5] = y[i] - x[i % 5];
        }
    }, expect!["tests/directives.rs:969:13: `x` cannot be reduced: it is used here otherwise than by `x[i] += v`, or `&=`, `|=`, `^=`, or `x[i] = x[i].min(v)` or `max` of integers, with one of them for all of the loop: write it so, or take it out of the clause"];

    another_element_that_is_reduced, [2], [32], |x, y, n| {
        marks::partition(1, 1);
        marks::reduction(x.len() as u32);
        for i in 0..n {
            x[i % 5] = y[i] + x[i % 4];
        }
    }, expect!["tests/directives.rs:977:13: `x` cannot be reduced: it is used here otherwise than by `x[i] += v`, or `&=`, `|=`, `^=`, or `x[i] = x[i].min(v)` or `max` of integers, with one of them for all of the loop: write it so, or take it out of the clause"];

    nothing_that_is_reduced, [2], [32], |x, y, n| {
        marks::partition(1, 1);
        marks::reduction(x.len() as u32);
        for i in 0..n {
            y[i] = 1;
        }
    }, expect!["tests/directives.rs:984:9: `x` cannot be reduced: nothing in the loop combines an element of it with a value: take it out of the clause"];

    sums_that_are_used_in_another_loop, [2], [32], |x, y, n| {
        marks::partition(1, 1);
        marks::reduction(x.len() as u32);
        for i in 0..n {
            x[i % 5] += y[i];
        }
        marks::partition(1, 1);
        for i in 0..n {
            y[i] = x[i % 5];
        }
    }, expect!["the atomic operation at tests/directives.rs:993:13 and the read at tests/directives.rs:997:20 use one element of `x`, in one iteration, and under `tblock(2) thread(32) loop 0: over_tblock(BLOCK) over_thread reduction(0); loop 1: over_tblock(BLOCK) over_thread` different threads do so in any order: put a `barrier` between them if they are of one block, distribute the loops around them alike, or let one thread of each block do it by `singular`"];

    two_loops_that_reduce_differently, [2], [32], |x, y, n| {
        marks::partition(1, 1);
        marks::reduction(x.len() as u32);
        for i in 0..n {
            x[i % 5] += y[i];
        }
        marks::partition(1, 1);
        marks::reduction(x.len() as u32);
        for i in 0..n {
            x[i % 5] |= y[i];
        }
    }, expect!["the atomic operation at tests/directives.rs:1005:13 and the atomic operation at tests/directives.rs:1010:13 use one element of `x`, in one iteration, and under `tblock(2) thread(32) loop 0: over_tblock(BLOCK) over_thread reduction(0); loop 1: over_tblock(BLOCK) over_thread reduction(0)` different threads do so in any order: put a `barrier` between them if they are of one block, distribute the loops around them alike, or let one thread of each block do it by `singular`"];

    staged_whole_and_not_read, [2], [32], |x, y, n| {
        marks::partition(1, 1);
        marks::whole(x.len() as u32);
        for i in 0..n {
            y[i] = 1;
        }
    }, expect!["tests/directives.rs:1017:9: `x` cannot be staged in shared memory: nothing in the loop reads an element of it: take it out of the clause"];
}

/// Reductions have a text, which names parameters that there are.
#[test]
fn reductions_have_texts() -> kiln::Result<()> {
    #[device_fn]
    fn count(x: &mut [u32], y: &mut [u32]) {
        for i in 0..100usize {
            x[y[i] as usize % 5] += 1;
        }
    }
    let program = Program::of(&DeviceFn::of::<count>()?)?;
    let text = "tblock(2) thread(8) loop 0: over_tblock(BLOCK) over_thread shared(1) whole(1) reduction(0)";
    let schedule: Schedule = text.parse()?;
    assert_eq!(schedule.to_string(), text);
    program.verify(&schedule, &KNOWN)?;
    let other = text.replace("reduction(0)", "reduction(7)").parse()?;
    let refused = program.verify(&other, &KNOWN).expect_err("there is none");
    expect!["tests/directives.rs:1028:9: `7` cannot be reduced: the region has no such parameter"]
        .assert_eq(&refused.to_string());
    let wrong: Result<Schedule, _> = text.replace("whole", "half").parse();
    assert!(wrong.is_err());
    Ok(())
}

/// What schedules cost: strides of neighbouring threads, rows of structs, staged slices, shared memory, as text and as JSON.
#[test]
fn costs_are_told_as_numbers() -> kiln::Result<()> {
    #[device_fn]
    fn costs(x: &[f32], y: &mut [f64], z: &[[f32; 4]], at: &[u32], n: usize) {
        marks::partition(1, 1);
        for i in 0..n {
            marks::partition(1, 1);
            marks::shared(x.len() as u32);
            marks::unpadded();
            for j in 0..n {
                let own = x[j * n + i] + x[i] + z[j][1] + z[at[i] as usize][0];
                y[i + j * n] = own as f64;
            }
        }
    }
    let program = Program::of(&DeviceFn::of::<costs>()?)?;
    let n = 64;
    let known = [
        Known::Length(n * n),
        Known::Length(n * n),
        Known::Length(n),
        Known::Length(n),
        Known::Number(n.into()),
    ];
    let guidance = program.guidance(&program.schedule(&[2, 2], &[32, 32]), &known)?;
    expect![[r#"
        tests/directives.rs:1057:49: read of `z`: 25 % of what comes is used: 4 of each 16 bytes are used: have a slice for each part of the elements
        tests/directives.rs:1057:61: read of `at`: 100 % of what comes is used
        tests/directives.rs:1057:59: read of `z`: not known
        tests/directives.rs:1058:17: write of `y`: 25 % of what comes is used: neighbouring threads are 64 elements apart; let the loop at tests/directives.rs:1052:9 be the one that is distributed over the last dimension of threads
        `x` in loop 1: 32 x 32 elements, strides 64 x 1: 4096 bytes, a warp goes to a bank 32 times
        `x` in loop 1: 32 elements, strides 1: 128 bytes, a warp goes to a bank 1 times
        2 blocks at once, 100 % of the warps, limited by threads; up to 32 registers a thread"#]].assert_eq(&guidance.to_string());
    expect![[r#"{"accesses":[{"place":"tests/directives.rs:1057:49","slice":"z","writes":false,"efficiency":0.25,"apart":1,"suggestion":"4 of each 16 bytes are used: have a slice for each part of the elements"},{"place":"tests/directives.rs:1057:61","slice":"at","writes":false,"efficiency":1,"apart":0,"suggestion":null},{"place":"tests/directives.rs:1057:59","slice":"z","writes":false,"efficiency":null,"apart":null,"suggestion":null},{"place":"tests/directives.rs:1058:17","slice":"y","writes":true,"efficiency":0.25,"apart":64,"suggestion":"neighbouring threads are 64 elements apart; let the loop at tests/directives.rs:1052:9 be the one that is distributed over the last dimension of threads"}],"sections":[{"section":"`x` in loop 1: 32 x 32 elements, strides 64 x 1","bytes":4096,"degree":32,"unpadded":32},{"section":"`x` in loop 1: 32 elements, strides 1","bytes":128,"degree":1,"unpadded":1}],"occupancy":{"blocks":2,"warps":1,"limit":"threads","registers":32,"shared":4224}}"#]].assert_eq(&guidance.to_json());
    let refused = program.guidance(&"tblock(1) thread(1)".parse()?, &known);
    assert!(refused.is_err(), "it has other loops");
    Ok(())
}

/// Loops that are interchanged, as by trial.
#[test]
fn interchanged_loops_are_verified_as_by_trial() -> kiln::Result<()> {
    let tally = verify_interchanged(0xbb67_ae85_84ca_a73b, 20_000)?;
    assert!(tally.accepted > 200 && tally.wrong > 200, "{tally:?}");
    assert!(tally.unproved < tally.accepted, "{tally:?}");
    Ok(())
}

refused! {
    interchanged_and_turned_round, [1], [1], |x, _y, _n| {
        marks::interchange();
        for i in 1..10usize {
            for j in 0..9usize {
                x[10 * i + j] = x[10 * (i - 1) + j + 1];
            }
        }
    }, expect!["the write at tests/directives.rs:1100:17 and the read at tests/directives.rs:1100:33 use one element of `x`, in iterations of the loop at tests/directives.rs:1098:9 that follow one another, and under `tblock(1) thread(1) loop 0: sequential interchange; loop 1: sequential` that order is turned round where the loops are interchanged: leave the loops as they are"];

    interchanged_with_nothing, [1], [1], |x, _y, n| {
        marks::interchange();
        for i in 0..n {
            x[i] = 1;
        }
    }, expect!["tests/directives.rs:1107:9: `interchange` cannot be done: the loop holds something else than one `for` loop and what that one's bounds and indices are computed of: let the inner loop stand alone in it"];

    interchanged_with_something_beside, [1], [1], |x, y, _n| {
        marks::interchange();
        for i in 0..10usize {
            y[i] = 0;
            for j in 0..10usize {
                x[10 * i + j] = 1;
            }
        }
    }, expect!["tests/directives.rs:1114:9: `interchange` cannot be done: the loop holds something else than one `for` loop and what that one's bounds and indices are computed of: let the inner loop stand alone in it"];

    a_triangle_interchanged, [1], [1], |x, _y, _n| {
        marks::interchange();
        for i in 0..10usize {
            for j in 0..i {
                x[10 * i + j] = 1;
            }
        }
    }, expect!["tests/directives.rs:1124:9: `interchange` cannot be done: the bounds of the inner loop depend on the outer one's counter: let them be the same for all of its turns"];

    interchanged_and_left, [1], [1], |x, y, _n| {
        marks::interchange();
        for i in 0..10usize {
            for j in 0..10usize {
                if y[i] > 3 {
                    break;
                }
                x[10 * i + j] = 1;
            }
        }
    }, expect!["tests/directives.rs:1133:9: `interchange` cannot be done: `break`, or the end of a loop around, is in the loops: test in each iteration whether there is something to do"];

    interchanged_with_a_sum, [1], [1], |x, y, _n| {
        let mut sum = 0;
        marks::interchange();
        for i in 0..10usize {
            for j in 0..10usize {
                sum = sum * 3 + y[10 * i + j];
            }
        }
        x[0] = sum;
    }, expect!["tests/directives.rs:1148:17: `sum` is written by iterations of the loop or part at tests/directives.rs:1146:9, which are executed in another order, and is read by others or behind it: declare it within, or write to an element of a slice"];
}
