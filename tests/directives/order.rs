//! What threads would do in another order than the sequential program, or what cannot be proved not to.

use expect_test::expect;
use kiln::directives::{Program, marks};
use kiln::prelude::*;
use suite::directives_random::verify_nests;

use super::{KNOWN, refused};

/// None that is wrong by trial is accepted, and none that is right is refused as wrong.
#[test]
fn random_nests_are_verified_as_by_trial() -> kiln::Result<()> {
    let tally = verify_nests(0x9e37_79b9_7f4a_7c15, 5000)?;
    assert!(tally.accepted > 500 && tally.wrong > 500, "{tally:?}");
    assert!(tally.unproved < 1000 && tally.strict < 500, "{tally:?}");
    Ok(())
}

refused! {
    an_earlier_element, [2], [32], |x, _y, n| {
        marks::partition(1, 1);
        for i in 1..n {
            x[i] = x[i - 1] + 1;
        }
    }, expect!["the write at tests/directives.rs:29:1 and the read at tests/directives.rs:29:1 use one element of `x`, in iterations of the loop at tests/directives.rs:29:1 that follow one another, and under `tblock(2) thread(32) loop 0: over_tblock(BLOCK) over_thread` different threads do so in any order: leave that loop sequential, or let its iterations use elements of their own"];

    a_later_element, [1], [32], |x, _y, n| {
        marks::partition(0, 1);
        for i in 0..n - 7 {
            x[i] = x[i + 7];
        }
    }, expect!["the read at tests/directives.rs:29:1 and the write at tests/directives.rs:29:1 use one element of `x`, in iterations of the loop at tests/directives.rs:29:1 that are 7 apart, and under `tblock(1) thread(32) loop 0: over_thread` different threads do so in any order: leave that loop sequential, or let its iterations use elements of their own"];

    one_element_of_all, [4], [1], |x, _y, n| {
        marks::partition(1, 0);
        for i in 0..n {
            x[0] = i as u32;
        }
    }, expect!["the write at tests/directives.rs:29:1 and the write at tests/directives.rs:29:1 use one element of `x`, in iterations of the loop at tests/directives.rs:29:1 that follow one another, and under `tblock(4) thread(1) loop 0: over_tblock(BLOCK)` different threads do so in any order: leave that loop sequential, or let its iterations use elements of their own"];

    a_sum_in_a_variable, [4], [32], |x, _y, n| {
        let mut sum = 0;
        marks::partition(1, 1);
        for i in 0..n {
            sum += x[i];
        }
        x[0] = sum;
    }, expect!["tests/directives.rs:29:1: `sum` is written by iterations of the loop or part at tests/directives.rs:29:1, which different threads execute, and is read by others or behind it: declare it within, or write to an element of a slice"];

    a_variable_that_an_iteration_finds, [4], [32], |x, _y, n| {
        let mut last = 0;
        marks::partition(1, 1);
        for i in 0..n {
            if i % 2 == 0 {
                last = x[i];
            }
            x[i] = last;
        }
    }, expect!["tests/directives.rs:29:1: `last` is written by iterations of the loop or part at tests/directives.rs:29:1, which different threads execute, and is read by others or behind it: declare it within, or write to an element of a slice"];

    an_array_of_all_iterations, [4], [32], |x, _y, n| {
        let mut counts = [0u32; 4];
        marks::partition(1, 1);
        for i in 0..n {
            counts[i % 4] += 1;
            x[i] = counts[i % 4];
        }
    }, expect!["tests/directives.rs:29:1: an array is written by iterations of the loop or part at tests/directives.rs:29:1, which different threads execute, and is read by others or behind it: declare it within, or write to an element of a slice"];

    siblings_that_are_distributed_differently, [2], [32], |x, y, n| {
        marks::partition(1, 1);
        for i in 0..n {
            x[i] = i as u32;
        }
        marks::partition(2, 1);
        for i in 0..n {
            y[i] = x[i];
        }
    }, expect!["the write at tests/directives.rs:29:1 and the read at tests/directives.rs:29:1 use one element of `x`, in one iteration, and under `tblock(2) thread(32) loop 0: over_tblock(BLOCK) over_thread; loop 1: over_tblock(CYCLIC) over_thread` different threads do so in any order: put a `barrier` between them if they are of one block, distribute the loops around them alike, or let one thread of each block do it by `singular`"];

    what_all_threads_repeat, [1], [32], |x, _y, n| {
        for i in 0..n {
            x[i] += 1;
        }
    }, expect!["the read at tests/directives.rs:29:1 and the write at tests/directives.rs:29:1 use one element of `x`, in one iteration, and under `tblock(1) thread(32) loop 0: sequential` different threads do so in any order: put a `barrier` between them if they are of one block, distribute the loops around them alike, or let one thread of each block do it by `singular`"];

    no_barrier_behind_singular, [1], [32], |x, y, n| {
        if marks::singular() {
            x[0] = 5;
        }
        marks::partition(0, 1);
        for i in 0..n {
            y[i] = x[0];
        }
    }, expect!["the write at tests/directives.rs:29:1 and the read at tests/directives.rs:29:1 use one element of `x`, in one iteration, and under `tblock(1) thread(32) loop 0: over_thread` different threads do so in any order: put a `barrier` between them if they are of one block, distribute the loops around them alike, or let one thread of each block do it by `singular`"];

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
    }, expect!["the write at tests/directives.rs:29:1 and the read at tests/directives.rs:29:1 use one element of `x`, in one iteration, and under `tblock(2) thread(32) loop 0: over_tblock(BLOCK) over_thread; loop 1: over_tblock(BLOCK) over_thread` different threads do so in any order: put a `barrier` between them if they are of one block, distribute the loops around them alike, or let one thread of each block do it by `singular`"];

    an_index_out_of_memory, [2], [32], |x, y, n| {
        marks::partition(1, 1);
        for i in 0..n {
            x[y[i] as usize] = 1;
        }
    }, expect!["cannot prove that the write at tests/directives.rs:29:1 and the write at tests/directives.rs:29:1 do not depend on each other through `x` when different threads execute them: an index, a bound of a loop around or a condition around (also that of `continue`) is not of sums of the loops' counters times numbers, or the blocks' shares change from turn to turn; write it so, or promise by `unsafe(independent)` what is so"];

    a_product_of_counters, [2], [32], |x, _y, n| {
        marks::partition(1, 1);
        for i in 0..n {
            for j in 0..2usize {
                x[i * i + j] = 1;
            }
        }
    }, expect!["cannot prove that the write at tests/directives.rs:29:1 and the write at tests/directives.rs:29:1 do not depend on each other through `x` when different threads execute them: an index, a bound of a loop around or a condition around (also that of `continue`) is not of sums of the loops' counters times numbers, or the blocks' shares change from turn to turn; write it so, or promise by `unsafe(independent)` what is so"];

    a_step_that_meets_again, [1], [32], |x, _y, n| {
        marks::partition(0, 1);
        for i in 0..n / 2 {
            x[2 * i] = 1;
            x[i] = 2;
        }
    }, expect!["the write at tests/directives.rs:29:1 and the write at tests/directives.rs:29:1 use one element of `x`, in iterations of the loop at tests/directives.rs:29:1 that follow one another, and under `tblock(1) thread(32) loop 0: over_thread` different threads do so in any order: leave that loop sequential, or let its iterations use elements of their own"];

    an_atomic_whose_result_is_used, [1], [32], |x, y, n| {
        for i in 0..n {
            y[i] = atomic_add(&mut x[i], 1);
        }
    }, expect!["tests/directives.rs:29:1: the result of what is done to memory here is used, and several threads execute it for one iteration of the program, as no loop around it is distributed over all dimensions of the grid: put it into `singular`, or distribute a loop around it"];

    an_atomic_that_others_read, [1], [32], |x, y, n| {
        marks::partition(0, 1);
        for i in 0..n {
            atomic_add(&mut x[0], 1);
            y[i] = x[0];
        }
    }, expect!["the atomic operation at tests/directives.rs:29:1 and the atomic operation at tests/directives.rs:29:1 use one element of `x`, in iterations of the loop at tests/directives.rs:29:1 that follow one another, and under `tblock(1) thread(32) loop 0: over_thread` different threads do so in any order: leave that loop sequential, or let its iterations use elements of their own"];

    a_reference_to_one_of_two, [1], [32], |x, _y, n| {
        let (mut a, mut b) = (1, 2);
        let one = if n > 5 { &mut a } else { &mut b };
        *one = 5;
        x[0] = a + b;
    }, expect!["tests/directives.rs:29:1: cannot prove that threads do not depend on each other: a write to memory that is no slice of the region's own parameters, or one of several"];
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
