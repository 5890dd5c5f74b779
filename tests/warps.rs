//! Loops over warps and their lanes: what is refused of them, random nests by trial, what is known of their costs.

use expect_test::expect;
use kiln::directives::{Known, Program, Schedule, marks};
use kiln::prelude::*;
use suite::directives_random::verify_warps;

use super::directives::refused;

/// None that is wrong by trial is accepted, and none without barriers that is right is refused as wrong.
#[test]
fn random_nests_of_warps_are_verified_as_by_trial() -> kiln::Result<()> {
    let tally = verify_warps(0x6a09_e667_f3bc_c908, 1000)?;
    assert!(tally.accepted > 100 && tally.wrong > 100, "{tally:?}");
    assert!(tally.unproved < 300 && tally.strict < 100, "{tally:?}");
    Ok(())
}

/// The arguments of the regions here: two slices of 4000 elements, and 40.
const KNOWN: [Known; 3] = [Known::Length(4000), Known::Length(4000), Known::Number(40)];

/// Regions on blocks of so many threads, with what is refused of each.
macro_rules! refused {
    ($($name:ident, $threads:expr, |$x:ident, $y:ident, $n:ident| $body:block, $want:expr;)*) => {$(
        #[test]
        fn $name() {
            #[device_fn]
            fn region($x: &mut [u32], $y: &mut [u32], $n: usize) $body
            refused(DeviceFn::of::<region>(), (&[2], &$threads), &KNOWN, $want);
        }
    )*};
}

refused! {
    half_a_warp, [4, 16], |x, _y, n| {
        marks::partition(0, marks::LANES);
        for i in 0..n {
            x[i] = 1;
        }
    }, expect!["tests/warps.rs:37:9: the loop is distributed over the lanes of a warp, which are of 32 neighbouring threads each, and a block has 16 threads along its last dimension: let the last number of `thread` be a multiple of 32, or write `over_thread`"];

    warps_and_a_half, [48], |x, _y, n| {
        marks::partition(0, marks::WARPS);
        for i in 0..n {
            x[i] = 1;
        }
    }, expect!["tests/warps.rs:44:9: the loop is distributed over warps, which are of 32 neighbouring threads each, and a block has 48 threads along its last dimension: let the last number of `thread` be a multiple of 32, or write `over_thread`"];

    warps_of_warps, [64], |x, _y, n| {
        marks::partition(0, marks::WARPS);
        for i in 0..n {
            marks::partition(0, marks::WARPS);
            for j in 0..n {
                x[i * n + j] = 1;
            }
        }
    }, expect!["tests/warps.rs:53:13: the loop is distributed over warps, and a loop around it over warps, which are the same threads: take one of the clauses away"];

    lanes_of_threads, [64], |x, _y, n| {
        marks::partition(0, marks::THREADS);
        for i in 0..n {
            marks::partition(0, marks::LANES);
            for j in 0..n {
                x[i * n + j] = 1;
            }
        }
    }, expect!["tests/warps.rs:63:13: the loop is distributed over the lanes of a warp, and a loop around it over the last dimension of threads, which are the same threads: take one of the clauses away"];

    threads_of_warps, [64], |x, _y, n| {
        marks::partition(0, marks::WARPS);
        for i in 0..n {
            marks::partition(0, marks::THREADS);
            for j in 0..n {
                x[i * n + j] = 1;
            }
        }
    }, expect!["tests/warps.rs:73:13: the loop is distributed over the last dimension of threads, and a loop around it over warps or their lanes, which are the same threads: take one of the clauses away"];

    what_another_lane_wrote, [64], |x, y, n| {
        marks::partition(1, marks::WARPS);
        for i in 0..n {
            marks::partition(0, marks::LANES);
            for j in 0..n {
                x[i * n + j] = 1;
            }
            marks::partition(0, marks::LANES);
            for j in 0..n - 1 {
                y[i * n + j] = x[i * n + j + 1];
            }
        }
    }, expect!["the write at tests/warps.rs:84:17 and the read at tests/warps.rs:88:32 use one element of `x`, in one iteration, and under `tblock(2) thread(64) loop 0: over_tblock(BLOCK) over_warp; loop 1: over_lane; loop 2: over_lane` different threads do so in any order: put a `barrier` between them if they are of one block, distribute the loops around them alike, or let one thread of each block do it by `singular`"];

    a_sum_of_lanes_in_a_variable, [64], |x, y, n| {
        marks::partition(1, marks::WARPS);
        for i in 0..n {
            let mut sum = 0;
            marks::partition(0, marks::LANES);
            for j in 0..n {
                sum += x[i * n + j];
            }
            y[i] = sum;
        }
    }, expect!["tests/warps.rs:99:17: `sum` is written by iterations of the loop or part at tests/warps.rs:98:13, which different threads execute, and is read by others or behind it: declare it within, or write to an element of a slice"];

    singular_of_warps, [64], |x, _y, n| {
        marks::partition(1, marks::WARPS);
        for i in 0..n {
            if marks::singular() {
                x[i] = 1;
            }
        }
    }, expect!["tests/warps.rs:108:13: `singular` within a loop over threads, of whose iterations the first thread has some only: put it outside of the loop, or take the clause for threads away"];

    a_barrier_in_lanes_of_their_own_number, [64], |x, _y, n| {
        marks::partition(1, marks::WARPS);
        for i in 0..n {
            marks::partition(0, marks::LANES);
            for j in 0..i {
                x[i * n + j] = 1;
                barrier();
            }
        }
    }, expect!["tests/warps.rs:118:13: a barrier, or a loop that stages slices, in a loop whose bounds threads of a block may have different: let them be the same for all iterations of loops over threads"];
}

#[device_fn]
fn scaled(x: &[f32], y: &mut [f32], n: usize, m: usize) {
    marks::partition(marks::BLOCK, marks::WARPS);
    for i in 0..n {
        marks::partition(0, marks::LANES);
        for j in 0..m {
            y[i * m + j] = 2.0 * x[i * m + j];
        }
    }
}

/// The text of a schedule is read again, and the lanes of the first warp use all that they get of a row.
#[test]
fn lanes_read_rows() -> kiln::Result<()> {
    let program = Program::of(&DeviceFn::of::<scaled>()?)?;
    let schedule = program.schedule(&[8], &[128]);
    let text = "tblock(8) thread(128) loop 0: over_tblock(BLOCK) over_warp; loop 1: over_lane";
    assert_eq!(schedule.to_string(), text);
    assert_eq!(text.parse::<Schedule>()?, schedule);
    let known = [
        Known::Length(6400),
        Known::Length(6400),
        Known::Number(64),
        Known::Number(100),
    ];
    program.verify(&schedule, &known)?;
    let guidance = program.guidance(&schedule, &known)?;
    let costs = guidance
        .accesses
        .iter()
        .map(|cost| (cost.efficiency, cost.apart));
    assert_eq!(costs.collect::<Vec<_>>(), [(Some(1.0), Some(1)); 2]);
    // Rows over lanes: what comes for a lane is used by it alone.
    let turned = "tblock(8) thread(128) loop 0: over_tblock(BLOCK) over_lane; loop 1: over_warp";
    let guidance = program.guidance(&turned.parse()?, &known)?;
    let apart = guidance.accesses.iter().map(|cost| cost.apart);
    assert_eq!(apart.collect::<Vec<_>>(), [Some(100); 2]);
    Ok(())
}
