//! Loops that cannot be interchanged, and random ones by trial.

use expect_test::expect;
use kiln::directives::marks;
use kiln::prelude::*;
use suite::directives_random::verify_interchanged;

use super::{KNOWN, refused};

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
    }, expect!["the write at tests/directives.rs:29:1 and the read at tests/directives.rs:29:1 use one element of `x`, in iterations of the loop at tests/directives.rs:29:1 that follow one another, and under `tblock(1) thread(1) loop 0: sequential interchange; loop 1: sequential` that order is turned round where the loops are interchanged: leave the loops as they are"];

    interchanged_with_nothing, [1], [1], |x, _y, n| {
        marks::interchange();
        for i in 0..n {
            x[i] = 1;
        }
    }, expect!["tests/directives.rs:29:1: `interchange` cannot be done: the loop holds something else than one `for` loop and what that one's bounds and indices are computed of: let the inner loop stand alone in it"];

    interchanged_with_something_beside, [1], [1], |x, y, _n| {
        marks::interchange();
        for i in 0..10usize {
            y[i] = 0;
            for j in 0..10usize {
                x[10 * i + j] = 1;
            }
        }
    }, expect!["tests/directives.rs:29:1: `interchange` cannot be done: the loop holds something else than one `for` loop and what that one's bounds and indices are computed of: let the inner loop stand alone in it"];

    a_triangle_interchanged, [1], [1], |x, _y, _n| {
        marks::interchange();
        for i in 0..10usize {
            for j in 0..i {
                x[10 * i + j] = 1;
            }
        }
    }, expect!["tests/directives.rs:29:1: `interchange` cannot be done: the bounds of the inner loop depend on the outer one's counter: let them be the same for all of its turns"];

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
    }, expect!["tests/directives.rs:29:1: `interchange` cannot be done: `break`, or the end of a loop around, is in the loops: test in each iteration whether there is something to do"];

    interchanged_with_a_sum, [1], [1], |x, y, _n| {
        let mut sum = 0;
        marks::interchange();
        for i in 0..10usize {
            for j in 0..10usize {
                sum = sum * 3 + y[10 * i + j];
            }
        }
        x[0] = sum;
    }, expect!["tests/directives.rs:29:1: `sum` is written by iterations of the loop or part at tests/directives.rs:29:1, which are executed in another order, and is read by others or behind it: declare it within, or write to an element of a slice"];
}
