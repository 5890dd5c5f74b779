//! Loops that cannot be transformed, side by side and by tiles, and the code of those that are.

use expect_test::expect;
use kiln::directives::{Program, Schedule, marks};
use kiln::error::Error;
use kiln::prelude::*;
use suite::directives_random::verify_side_by_side;

use super::{KNOWN, read, refused};

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
    }, expect!["the write at tests/directives.rs:29:1 and the read at tests/directives.rs:29:1 use one element of `x`, in iterations of the loop at tests/directives.rs:29:1 that are 3 apart, and under `tblock(1) thread(1) loop 0: sequential unroll_and_jam(4)` these are executed side by side: let fewer of its iterations be side by side, or use elements of their own"];

    side_by_side_of_one_thread, [1], [8], |x, _y, n| {
        marks::partition(0, 1);
        marks::jam(2);
        for i in 0..n - 8 {
            x[i + 8] = x[i] + 1;
        }
    }, expect!["the write at tests/directives.rs:29:1 and the read at tests/directives.rs:29:1 use one element of `x`, in iterations of the loop at tests/directives.rs:29:1 that are 8 apart, and under `tblock(1) thread(8) loop 0: over_thread unroll_and_jam(2)` these are executed side by side: let fewer of its iterations be side by side, or use elements of their own"];

    an_inner_loop_that_is_jammed, [1], [1], |x, _y, _n| {
        marks::jam(2);
        for i in 1..9usize {
            for j in 0..9usize {
                x[i * 10 + j] = x[i * 10 + j + 1 - 10];
            }
        }
    }, expect!["the write at tests/directives.rs:29:1 and the read at tests/directives.rs:29:1 use one element of `x`, in iterations of the loop at tests/directives.rs:29:1 that follow one another, and under `tblock(1) thread(1) loop 0: sequential unroll_and_jam(2); loop 1: sequential` these are executed side by side: let fewer of its iterations be side by side, or use elements of their own"];

    side_by_side_and_not_known, [1], [1], |x, y, n| {
        marks::jam(2);
        for i in 0..n {
            x[y[i] as usize] = 1;
        }
    }, expect!["cannot prove that the write at tests/directives.rs:29:1 and the write at tests/directives.rs:29:1 do not depend on each other through `x` when iterations are executed side by side: an index, a bound of a loop around or a condition around (also that of `continue`) is not of sums of the loops' counters times numbers, or the blocks' shares change from turn to turn; write it so, or promise by `unsafe(independent)` what is so"];

    a_sum_side_by_side, [1], [1], |x, y, n| {
        let mut sum = 0;
        marks::jam(2);
        for i in 0..n {
            sum += x[i];
        }
        y[0] = sum;
    }, expect!["tests/directives.rs:29:1: `sum` is written by iterations of the loop or part at tests/directives.rs:29:1, which are executed side by side, and is read by others or behind it: declare it within, or write to an element of a slice"];

    an_iteration_side_by_side_that_ends, [1], [8], |x, y, n| {
        marks::partition(0, 1);
        marks::jam(2);
        for i in 0..n {
            if x[i] > 5 {
                continue;
            }
            y[i] = 1;
        }
    }, expect!["tests/directives.rs:29:1: `unroll_and_jam(2)` cannot be done: `continue`, `break` or `return` ends an iteration, and others are executed beside it: put what follows into an `if`"];

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
    }, expect!["tests/directives.rs:29:1: `unroll_and_jam(2)` cannot be done: a barrier, or a loop that stages slices, is in a loop or `if` that is not the same for iterations side by side: let its bounds or condition be the same for all"];

    tiles_of_a_loop_of_any_step, [1], [8], |x, _y, n| {
        marks::tile(4);
        for i in (0..n).step_by(n / 10) {
            x[i] = 1;
        }
    }, expect!["tests/directives.rs:29:1: `tile(4)` cannot be done: the loop does not count up by a literal: write it so that it does"];

    tiles_of_a_loop_that_ends, [1], [1], |x, y, n| {
        marks::tile(4);
        for i in 0..n {
            if x[i] > 5 {
                break;
            }
            y[i] = 1;
        }
    }, expect!["tests/directives.rs:29:1: `tile(4)` cannot be done: `break`, or the end of a loop around, is in the loop: test in each iteration whether there is something to do"];

    tiles_beyond_the_type, [1], [1], |x, _y, _n| {
        marks::tile(200);
        for i in 0..100i8 {
            x[i as usize] = 1;
        }
    }, expect!["tests/directives.rs:29:1: `tile(200)` cannot be done: a step from tile to tile is no number of the index's type: choose smaller tiles"];

    tiles_of_nothing, [1], [1], |x, _y, n| {
        marks::tile(0);
        for i in 0..n {
            x[i] = 1;
        }
    }, expect!["tests/directives.rs:29:1: `tile(0)` cannot be done: a tile has from 1 to 65536 iterations"];

    too_many_side_by_side, [1], [1], |x, _y, n| {
        marks::jam(65);
        for i in 0..n {
            x[i] = 1;
        }
    }, expect!["tests/directives.rs:29:1: `unroll_and_jam(65)` cannot be done: from 1 to 64 iterations are executed side by side, each of which is written out"];

    too_long_a_body, [1], [1], |x, _y, n| {
        marks::unroll(1025);
        for i in 0..n {
            x[i] = 1;
        }
    }, expect!["tests/directives.rs:29:1: `unroll(1025)` cannot be done: a body is written from 1 to 1024 times"];
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
    expect!["tests/directives/transformed.rs:137:9: the loop is transformed so twice (`coarsen` is `unroll_and_jam` of a loop over threads): take one of them away"].assert_eq(&refused.to_string());
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
