//! Loops over warps and over their lanes: who executes which iterations, and that what comes out is what the functions give as they are
//! written, of any number of rows and columns.

use kiln::core::args::IntoArg;
use kiln::directives::{Known, OverBlocks, OverThreads, Partition, Program, marks};
use kiln::prelude::*;

use super::directives::{stepped_program, tag_of, who};
use super::{Outcome, chapter};

chapter![
    each_warp_and_lane_has_its_iterations,
    rows_over_warps,
    columns_over_warps,
    warps_beside_threads,
    rows_of_any_length,
    rows_that_are_staged,
    warps_that_meet,
    lanes_that_are_threads,
];

/// The threads of a warp.
const WARP: u32 = 32;
/// Numbers of rows and columns, also none, and such as no number of warps or lanes divides.
const SIZES: [(usize, usize); 7] = [(0, 7), (5, 0), (1, 1), (3, 31), (8, 32), (13, 33), (7, 100)];

fn numbers(len: usize) -> Vec<u32> {
    (0..len as u32).map(|i| i * 7 % 23 + 1).collect()
}

fn each_warp_and_lane_has_its_iterations(jit: &Jit) -> Outcome {
    let program = stepped_program()?;
    let blocks = [None, Some(OverBlocks::Block), Some(OverBlocks::Cyclic)];
    let both = [OverThreads::Warps, OverThreads::Lanes];
    let ways = blocks
        .into_iter()
        .flat_map(|by| both.map(|over| (by, over)));
    for (over_blocks, over) in ways {
        for (grid, threads) in [(1, vec![32]), (3, vec![96]), (2, vec![3, 64])] {
            let mut schedule = program.schedule(&[grid], &threads);
            schedule.loops[0].partition = Partition {
                over_blocks,
                over_threads: Some(over),
            };
            let warps = threads[threads.len() - 1] / WARP;
            let (at_once, apart) = match over {
                OverThreads::Warps => (warps, WARP),
                _ => (WARP, 1),
            };
            for n in [0u32, 1, 31, 32, 33, 100] {
                let args = [0, n as i32, 1].map(IntoArg::into_arg).into();
                let got = who(jit, &program, &schedule, n as i32, args)?;
                for (k, by) in (0..).zip(got) {
                    let (block, own) = match over_blocks {
                        None => (0, k),
                        Some(OverBlocks::Block) => (k / n.div_ceil(grid), k % n.div_ceil(grid)),
                        Some(OverBlocks::Cyclic) => (k / at_once % grid, k),
                    };
                    let wanted = tag_of(block, own % at_once * apart);
                    assert_eq!(by, wanted, "{schedule}: {k} of {n}");
                }
            }
        }
    }
    Ok(())
}

/// A warp has a row, and a lane each 32nd column.
#[kiln::offload]
fn weighted(x: &[u32], weights: &[u32], y: &mut [u32], n: usize, m: usize, blocks: usize) {
    #[kernel(tblock(blocks), thread(64))]
    {
        #[loop_partition(over_tblock, over_warp)]
        for i in 0..n {
            let weight = weights[i];
            #[loop_partition(over_lane)]
            for j in 0..m {
                y[i * m + j] = weight * x[i * m + j] + j as u32;
            }
        }
    }
}

fn rows_over_warps(jit: &Jit) -> Outcome {
    for (n, m) in SIZES {
        for blocks in [1, 3] {
            let (x, weights) = (numbers(n * m), numbers(n));
            let (mut y, mut z) = (vec![0; n * m], vec![0; n * m]);
            weighted.launch(jit, &x, &weights, &mut y, n, m, blocks)?;
            weighted.sequential(&x, &weights, &mut z, n, m, blocks);
            assert_eq!(y, z, "{n} {m} {blocks}");
        }
    }
    Ok(())
}

/// The outer loop over lanes, the inner one over warps in turn, and a dimension of threads besides.
#[kiln::offload]
fn transposed(x: &[u32], y: &mut [u32], n: usize, m: usize, planes: usize) {
    #[kernel(tblock(2), thread(2, 96))]
    {
        #[loop_partition(over_tblock(CYCLIC), over_thread)]
        for plane in (0..planes).rev() {
            #[loop_partition(over_lane)]
            for j in 0..m {
                #[loop_partition(over_warp)]
                for i in (1..n).step_by(2) {
                    y[(plane * m + j) * n + i] = x[(plane * n + i) * m + j];
                }
            }
        }
    }
}

fn columns_over_warps(jit: &Jit) -> Outcome {
    for (n, m) in SIZES {
        let x = numbers(3 * n * m);
        let (mut y, mut z) = (vec![9; 3 * n * m], vec![9; 3 * n * m]);
        transposed.launch(jit, &x, &mut y, n, m, 3)?;
        transposed.sequential(&x, &mut z, n, m, 3);
        assert_eq!(y, z, "{n} {m}");
    }
    Ok(())
}

/// One region has loops over all threads, over warps and lanes, and over lanes alone.
#[kiln::offload]
fn mixed(x: &mut [u32], y: &mut [u32], n: usize, m: usize) {
    #[kernel(tblock(1), thread(64))]
    {
        #[loop_partition(over_thread)]
        for i in 0..n * m {
            x[i] = 3 * x[i] + 1;
        }
        barrier!();
        #[loop_partition(over_warp)]
        for i in 0..n {
            let mut sum = 0;
            for j in 0..m {
                sum += x[i * m + j];
            }
            #[loop_partition(over_lane, coarsen(2))]
            for j in 0..m {
                y[i * m + j] = sum + x[i * m + j];
            }
        }
        barrier!();
        for i in 0..n {
            #[loop_partition(over_lane)]
            for j in 0..m {
                x[i * m + j] = y[i * m + (m - 1 - j)];
            }
        }
    }
}

fn warps_beside_threads(jit: &Jit) -> Outcome {
    for (n, m) in SIZES {
        let (mut x, mut y) = (numbers(n * m), vec![0; n * m]);
        let (mut u, mut v) = (x.clone(), y.clone());
        mixed.launch(jit, &mut x, &mut y, n, m)?;
        mixed.sequential(&mut u, &mut v, n, m);
        assert_eq!((x, y), (u, v), "{n} {m}");
    }
    Ok(())
}

/// Rows of a sparse matrix, each summed by the lanes of a warp.
#[kiln::offload]
fn rows_summed(starts: &[u32], columns: &[u32], x: &[u32], y: &mut [u32]) {
    #[kernel(tblock(2), thread(96))]
    {
        #[loop_partition(over_tblock(CYCLIC), over_warp)]
        for row in 0..y.len() {
            let (first, end) = (starts[row], starts[row + 1]);
            #[loop_partition(over_lane, reduction(y))]
            for at in first..end {
                y[row] += x[columns[at as usize] as usize];
            }
        }
    }
}

fn rows_of_any_length(jit: &Jit) -> Outcome {
    for rows in [0, 1, 3, 20] {
        let mut starts = vec![0];
        for row in 0..rows {
            starts.push(starts[row] + [0, 1, 40, 33, 5][row % 5]);
        }
        let columns = numbers(starts[rows] as usize);
        let x = numbers(30);
        let (mut y, mut z) = (vec![2; rows], vec![2; rows]);
        rows_summed.launch(jit, &starts, &columns, &x, &mut y)?;
        rows_summed.sequential(&starts, &columns, &x, &mut z);
        assert_eq!(y, z, "{rows}");
    }
    Ok(())
}

/// A block stages what its warps read, and keeps what they write until the turn ends.
#[kiln::offload]
fn smoothed(x: &[u32], y: &mut [u32], n: usize, m: usize) {
    #[kernel(tblock(2), thread(64))]
    {
        #[loop_partition(over_tblock, over_warp)]
        for i in 0..n {
            #[loop_partition(over_lane)]
            #[shared(copyin(x), copyout(y))]
            for j in 0..m {
                y[i * m + j] = x[i * (m + 2) + j] + x[i * (m + 2) + j + 1] + x[i * (m + 2) + j + 2];
            }
        }
    }
}

fn rows_that_are_staged(jit: &Jit) -> Outcome {
    for (n, m) in SIZES {
        let x = numbers(n * (m + 2));
        let (mut y, mut z) = (vec![0; n * m], vec![0; n * m]);
        smoothed.launch(jit, &x, &mut y, n, m)?;
        smoothed.sequential(&x, &mut z, n, m);
        assert_eq!(y, z, "{n} {m}");
    }
    Ok(())
}

/// A barrier in a loop over warps, to which those come that have no iteration of the last turn.
#[kiln::offload]
fn met(x: &mut [u32], y: &mut [u32], n: usize) {
    #[kernel(tblock(2), thread(96))]
    {
        #[loop_partition(over_tblock, over_warp)]
        for i in 0..n {
            #[loop_partition(over_lane)]
            for j in 0..40usize {
                x[i * 40 + j] += j as u32;
            }
            barrier!();
            #[loop_partition(over_lane)]
            for j in 0..40usize {
                y[i * 40 + j] = x[i * 40 + 39 - j];
            }
        }
    }
}

fn warps_that_meet(jit: &Jit) -> Outcome {
    for n in [0, 1, 3, 7, 12] {
        let (mut x, mut y) = (numbers(n * 40), vec![0; n * 40]);
        let (mut u, mut v) = (x.clone(), y.clone());
        met.launch(jit, &mut x, &mut y, n)?;
        met.sequential(&mut u, &mut v, n);
        assert_eq!((x, y), (u, v), "{n}");
    }
    Ok(())
}

#[device_fn]
fn handed_over(x: &mut [u32], y: &mut [u32], ahead: usize) {
    marks::partition(0, marks::THREADS);
    for i in 0..64usize {
        x[i] = 5 * i as u32;
    }
    marks::partition(0, marks::WARPS);
    for i in 0..2usize {
        marks::partition(0, marks::LANES);
        for j in 0..32usize - ahead {
            y[i * 32 + j] = x[i * 32 + j + ahead];
        }
    }
}

/// A thread of a dimension is a lane of a warp: what it wrote it reads without a barrier, and what others wrote it does not.
fn lanes_that_are_threads(jit: &Jit) -> Outcome {
    let program = Program::of(&DeviceFn::of::<handed_over>()?)?;
    let schedule = program.schedule(&[1], &[64]);
    let known = |ahead| [Known::Length(64), Known::Length(64), Known::Number(ahead)];
    program.verify(&schedule, &known(0))?;
    program
        .verify(&schedule, &known(1))
        .expect_err("the next lane wrote it");
    let kernel = program.apply(&schedule)?;
    let (mut x, mut y) = (jit.zeros::<u32>(64)?, jit.zeros::<u32>(64)?);
    let args = args!(&mut x, &mut y, 0u32);
    jit.launch(kernel.kernel(), kernel.grid(), kernel.block(), args)?;
    assert_eq!(x.to_vec()?, y.to_vec()?);
    Ok(())
}
