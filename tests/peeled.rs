//! Loops whose first or last iterations cannot be split off, and what is left of the code of others.

use expect_test::expect;
use kiln::directives::{Known, Program, Schedule, marks};
use kiln::prelude::*;

use super::directives::refused;

/// The arguments of the regions here: two slices of 100 elements, and 100.
const KNOWN: [Known; 3] = [Known::Length(100), Known::Length(100), Known::Number(100)];

/// Regions with what is refused of each.
macro_rules! refused {
    ($($name:ident, |$x:ident, $y:ident, $n:ident| $body:block, $want:expr;)*) => {$(
        #[test]
        fn $name() {
            #[device_fn]
            fn region($x: &mut [u32], $y: &mut [u32], $n: usize) $body
            refused(DeviceFn::of::<region>(), (&[2], &[32]), &KNOWN, $want);
        }
    )*};
}

refused! {
    steps_that_are_no_literal, |x, y, n| {
        let step = y.len();
        marks::peel_last(1);
        for i in (0..n).step_by(step) {
            x[i] = 1;
        }
    }, expect!["tests/peeled.rs:28:9: `peel_last(1)` cannot be done: the loop does not count up by a literal: write it so that it does"];

    a_loop_that_is_left, |x, _y, n| {
        marks::peel_first(1);
        for i in 0..n {
            if i == 50 {
                break;
            }
            x[i] = 1;
        }
    }, expect!["tests/peeled.rs:35:9: `peel_first(1)` cannot be done: `break`, or the end of a loop around, is in the loop: test in each iteration whether there is something to do"];

    what_the_first_iteration_wrote, |x, _y, n| {
        marks::partition(1, 1);
        marks::peel_first(1);
        for i in 0..n {
            x[i] = x[0] + 1;
        }
    }, expect!["the write at tests/peeled.rs:47:13 and the read at tests/peeled.rs:47:20 use one element of `x`, in one iteration, and under `tblock(2) thread(32) loop 0: over_tblock(BLOCK) over_thread peel_first(1)` different threads do so in any order: put a `barrier` between them if they are of one block, distribute the loops around them alike, or let one thread of each block do it by `singular`"];

    an_array_of_the_block, |x, _y, n| {
        marks::partition(1, 0);
        marks::peel_first(1);
        for i in 0..n {
            let tile = shared!([u32; 4]);
            *tile = [0; 4];
            marks::partition(0, 1);
            for j in 0..4usize {
                tile[j] = 1;
            }
            x[i] = 1;
        }
    }, expect!["tests/peeled.rs:56:13: an array in shared memory is declared in a loop whose first or last iterations are split off, where it would be another one: declare it before the loop"];

    what_blocks_compute, |x, y, n| {
        for i in 0..n {
            x[i] = 2 * i as u32;
        }
        marks::partition(1, 1);
        marks::compute(x.len() as u32);
        marks::peel_first(1);
        for i in 0..n {
            y[i] = x[i];
        }
    }, expect!["tests/peeled.rs:72:9: `peel_first(1)` cannot be done: blocks compute what a turn of the loop reads, and iterations that are split off would find nothing: take `compute` away, or let the loop be whole"];

    too_many, |x, _y, n| {
        marks::peel_last(65);
        for i in 0..n {
            x[i] = 1;
        }
    }, expect!["tests/peeled.rs:79:9: `peel_last(65)` cannot be done: from 1 to 64 iterations are split off"];

    twice, |x, _y, n| {
        marks::peel_first(1);
        marks::peel_first(2);
        for i in 0..n {
            x[i] = 1;
        }
    }, expect!["tests/peeled.rs:86:9: the loop is transformed so twice (`coarsen` is `unroll_and_jam` of a loop over threads): take one of them away"];
}

#[device_fn]
fn smoothed(x: &[f32], y: &mut [f32], n: u32, m: u32) {
    marks::partition(marks::BLOCK, marks::THREADS);
    for i in 0..n {
        let row = i * m;
        for j in 0..m {
            let left = if j == 0 {
                0.0
            } else {
                x[(row + j - 1) as usize]
            };
            let right = if j == m - 1 {
                0.0
            } else {
                x[(row + j + 1) as usize]
            };
            y[(row + j) as usize] = left + right;
        }
    }
}

/// What is known of the iterations that are left is not asked in them.
#[test]
fn conditions_of_the_ends_are_gone() -> kiln::Result<()> {
    let program = Program::of(&DeviceFn::of::<smoothed>()?)?;
    let plain = program.schedule(&[4], &[64]);
    let text = "tblock(4) thread(64) loop 0: over_tblock(BLOCK) over_thread; loop 1: sequential peel_first(1) peel_last(1)";
    let peeled: Schedule = text.parse()?;
    assert_eq!(peeled.to_string(), text);
    let known = |schedule: &Schedule| {
        let text = program.apply(schedule)?.module().to_string();
        Ok::<usize, kiln::error::Error>(text.matches("const false").count())
    };
    assert_eq!((known(&plain)?, known(&peeled)?), (0, 2));
    Ok(())
}
