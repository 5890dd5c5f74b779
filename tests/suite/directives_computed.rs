//! Slices that blocks compute in shared memory, as the loops before do that write them: tiles that overlap.

use kiln::directives::DirectiveError;
use kiln::prelude::*;

use super::{Outcome, chapter};

chapter![
    two_steps_of_a_stencil,
    two_steps_side_by_side,
    sums_of_windows,
    planes_in_any_order,
    rows_by_lines_of_threads,
    rows_that_go_on_in_others,
    boxes_by_lines_of_threads,
    every_other_column,
    what_is_computed_is_not_kept,
];

/// Two steps of a difference equation, in which a cell at the border is its own neighbour.
#[kiln::offload]
fn two_steps(x: &[f32], heat: &[f32], y: &mut [f32], n: usize, m: usize, by: f32) {
    let mut half: Vec<f32> = vec![0.0; n * m];
    global!(alloc half);
    #[kernel(tblock(n.div_ceil(4), m.div_ceil(8)), thread(4, 8))]
    {
        for i in 0..n {
            for j in 0..m {
                let at = i * m + j;
                let own = x[at];
                let north = if i > 0 { x[at - m] } else { own };
                let south = if i < n - 1 { x[at + m] } else { own };
                let west = if j > 0 { x[at - 1] } else { own };
                let east = if j < m - 1 { x[at + 1] } else { own };
                half[at] = own + by * (heat[at] + north + south + west + east - 4.0 * own);
            }
        }
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..n {
            #[loop_partition(over_tblock, over_thread)]
            #[shared(compute(half))]
            for j in 0..m {
                let at = i * m + j;
                let own = half[at];
                let north = if i > 0 { half[at - m] } else { own };
                let south = if i < n - 1 { half[at + m] } else { own };
                let west = if j > 0 { half[at - 1] } else { own };
                let east = if j < m - 1 { half[at + 1] } else { own };
                y[at] = own + by * (heat[at] + north + south + west + east - 4.0 * own);
            }
        }
    }
}

fn numbers(len: usize) -> Vec<f32> {
    (0..len).map(|i| (i * 7 % 11) as f32 - 4.0).collect()
}

fn two_steps_of_a_stencil(jit: &Jit) -> Outcome {
    for (n, m) in [(8, 16), (9, 13), (1, 1), (1, 30), (2, 9)] {
        let (x, heat) = (numbers(n * m), numbers(n * m));
        let (mut y, mut z) = (vec![0.0; n * m], vec![0.0; n * m]);
        let ((), report) = two_steps.launch_reported(jit, &x, &heat, &mut y, n, m, 0.125)?;
        two_steps.sequential(&x, &heat, &mut z, n, m, 0.125);
        assert_eq!(y, z, "{n} {m}");
        // What is computed is not copied.
        assert_eq!((report.uploads, report.downloads), (3, 1));
        let schedule = report.launches[0].to_string();
        assert!(schedule.contains("shared(6) compute(6)"), "{schedule}");
    }
    Ok(())
}

/// As [`two_steps`], with lines of threads that are whole warps; what is written first goes from the last column to the first.
#[kiln::offload]
fn by_lines(x: &[f32], y: &mut [f32], n: usize, m: usize) {
    let mut half: Vec<f32> = vec![0.0; n * m];
    global!(alloc half);
    #[kernel(tblock(n.div_ceil(4), m.div_ceil(32)), thread(4, 32))]
    {
        for j in (0..m).rev() {
            for i in 0..n {
                let at = i * m + j;
                let west = if j > 0 { x[at - 1] } else { 0.5 };
                half[at] = 2.0 * x[at] + west;
            }
        }
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..n {
            #[loop_partition(over_tblock, over_thread)]
            #[shared(compute(half))]
            for j in 0..m {
                let at = i * m + j;
                let north = if i > 0 { half[at - m] } else { 1.0 };
                let south = if i < n - 1 { half[at + m] } else { 2.0 };
                let west = if j > 1 { half[at - 2] } else { 3.0 };
                let east = if j < m - 3 { half[at + 3] } else { 4.0 };
                y[at] = north - 2.0 * south + 4.0 * west - 8.0 * east;
            }
        }
    }
}

fn rows_by_lines_of_threads(jit: &Jit) -> Outcome {
    for (n, m) in [(9, 64), (4, 45), (1, 5), (5, 33), (40, 520), (3, 31)] {
        let x = numbers(n * m);
        let (mut y, mut z) = (vec![0.0; n * m], vec![0.0; n * m]);
        by_lines.launch(jit, &x, &mut y, n, m)?;
        by_lines.sequential(&x, &mut z, n, m);
        assert_eq!(y, z, "{n} {m}");
    }
    Ok(())
}

/// Reads beside the ends of rows the elements of rows before and behind.
#[kiln::offload]
fn across_rows(x: &[u32], y: &mut [u32], n: usize, m: usize) {
    let mut own: Vec<u32> = vec![0; n * m];
    global!(alloc own);
    #[kernel(tblock(n.div_ceil(2), m.div_ceil(16)), thread(2, 16))]
    {
        for i in 0..n {
            for j in 0..m {
                own[i * m + j] = 3 * x[i * m + j] + i as u32;
            }
        }
        #[loop_partition(over_tblock, over_thread)]
        for i in 1..n - 1 {
            #[loop_partition(over_tblock, over_thread)]
            #[shared(compute(own))]
            for j in 0..m {
                let at = i * m + j;
                y[at] = own[at - 5] + 7 * own[at] + 49 * own[at + 4];
            }
        }
    }
}

fn rows_that_go_on_in_others(jit: &Jit) -> Outcome {
    for (n, m) in [(5, 16), (4, 37), (3, 24), (7, 64), (12, 300)] {
        let x: Vec<u32> = (0..(n * m) as u32).map(|i| i * 7 % 101).collect();
        let (mut y, mut z) = (vec![1; n * m], vec![1; n * m]);
        across_rows.launch(jit, &x, &mut y, n, m)?;
        across_rows.sequential(&x, &mut z, n, m);
        assert_eq!(y, z, "{n} {m}");
    }
    Ok(())
}

/// Boxes of three dimensions, which go beyond threads' own elements along each.
#[kiln::offload]
fn boxes(x: &[u32], y: &mut [u32], n: usize) {
    let mut half: Vec<u32> = vec![0; n * n * n];
    global!(alloc half);
    #[kernel(tblock(n.div_ceil(2), n.div_ceil(4), n.div_ceil(8)), thread(2, 4, 8))]
    {
        for i in 0..n {
            for j in 0..n {
                for k in 0..n {
                    let at = (i * n + j) * n + k;
                    half[at] = x[at] + (k as u32 ^ j as u32);
                }
            }
        }
        #[loop_partition(over_tblock, over_thread)]
        for i in 1..n - 1 {
            #[loop_partition(over_tblock, over_thread)]
            for j in 1..n - 1 {
                #[loop_partition(over_tblock, over_thread)]
                #[shared(compute(half))]
                for k in 1..n - 1 {
                    let at = (i * n + j) * n + k;
                    let (up, down) = (half[at - n * n], half[at + n * n]);
                    let (north, south) = (half[at - n], half[at + n]);
                    y[at] = up
                        + 2 * down
                        + 4 * north
                        + 8 * south
                        + 16 * half[at - 1]
                        + 32 * half[at + 1];
                }
            }
        }
    }
}

fn boxes_by_lines_of_threads(jit: &Jit) -> Outcome {
    for n in [2, 5, 10, 19] {
        let x: Vec<u32> = (0..(n * n * n) as u32).map(|i| i * 13 % 211).collect();
        let (mut y, mut z) = (vec![1; x.len()], vec![1; x.len()]);
        boxes.launch(jit, &x, &mut y, n)?;
        boxes.sequential(&x, &mut z, n);
        assert_eq!(y, z, "{n}");
    }
    Ok(())
}

/// Reads every other column, and one that lies far from the others, so that rows have places that no thread's own column is.
#[kiln::offload]
fn of_pairs(x: &[u32], y: &mut [u32], n: usize, m: usize) {
    let mut own: Vec<u32> = vec![0; n * m * 2];
    global!(alloc own);
    #[kernel(tblock(n.div_ceil(4), m.div_ceil(8)), thread(4, 8))]
    {
        for i in 0..n {
            for j in 0..m * 2 {
                own[i * m * 2 + j] = 5 * x[i * m * 2 + j];
            }
        }
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..n {
            #[loop_partition(over_tblock, over_thread)]
            #[shared(compute(own))]
            for j in 0..m {
                let at = i * m * 2 + j * 2;
                let beside = if j + 6 < m { own[at + 12] } else { 9 };
                y[i * m + j] = own[at] + 3 * beside;
            }
        }
    }
}

fn every_other_column(jit: &Jit) -> Outcome {
    for (n, m) in [(4, 8), (9, 29), (1, 1), (8, 64)] {
        let x: Vec<u32> = (0..(n * m * 2) as u32).map(|i| i * 11 % 97).collect();
        let (mut y, mut z) = (vec![1; n * m], vec![1; n * m]);
        of_pairs.launch(jit, &x, &mut y, n, m)?;
        of_pairs.sequential(&x, &mut z, n, m);
        assert_eq!(y, z, "{n} {m}");
    }
    Ok(())
}

/// As [`two_steps`] along rows, with iterations side by side and lanes beyond the end.
#[kiln::offload]
fn along_rows(x: &[f32], edge: &[f32], y: &mut [f32], n: usize, m: usize) {
    let mut half: Vec<f32> = vec![0.0; n * m];
    global!(alloc half);
    #[kernel(tblock(3, 2), thread(2, 4))]
    {
        for i in 0..n {
            for j in 0..m {
                half[i * m + j] = 3.0 * x[i * m + j] - edge[j];
            }
        }
        #[loop_partition(over_tblock, over_thread, coarsen(2))]
        for i in 0..n {
            #[loop_partition(over_tblock, over_thread, coarsen(2))]
            #[shared(copyin(edge), compute(half))]
            for j in 1..m - 1 {
                let at = i * m + j;
                y[at] = half[at - 1] + edge[j] * half[at] + half[at + 1];
            }
        }
    }
}

fn two_steps_side_by_side(jit: &Jit) -> Outcome {
    for (n, m) in [(12, 18), (13, 23), (1, 2), (0, 5)] {
        let (x, edge) = (numbers(n * m), numbers(m));
        let (mut y, mut z) = (vec![0.5; n * m], vec![0.5; n * m]);
        along_rows.launch(jit, &x, &edge, &mut y, n, m)?;
        along_rows.sequential(&x, &edge, &mut z, n, m);
        assert_eq!(y, z, "{n} {m}");
    }
    Ok(())
}

/// Sums of windows, of which the differences are taken; a loop and a variable are in what blocks compute.
#[kiln::offload]
fn differences(x: &[u32], scale: u32, y: &mut [u32], n: usize) {
    let mut sums: Vec<u32> = vec![0; n];
    global!(alloc sums);
    #[kernel(tblock(3), thread(8))]
    {
        for i in (0..n).rev() {
            let mut sum = scale;
            for ahead in 0..4 {
                if ahead % 2 == 0 || x[i] > 5 {
                    sum = sum * 3 + x[i + ahead];
                }
            }
            sums[i] = sum;
        }
        #[shared(compute(sums))]
        #[loop_partition(over_tblock(CYCLIC), over_thread)]
        for i in 0..n {
            let before = if i > 1 { sums[i - 2] } else { 7 };
            y[i] = sums[i].wrapping_sub(before);
        }
    }
}

fn sums_of_windows(jit: &Jit) -> Outcome {
    for n in [0, 1, 24, 77] {
        let x: Vec<u32> = (0..n as u32 + 3).map(|i| i * 7 % 11).collect();
        let (mut y, mut z) = (vec![0; n], vec![0; n]);
        differences.launch(jit, &x, 5, &mut y, n)?;
        differences.sequential(&x, 5, &mut z, n);
        assert_eq!(y, z, "{n}");
    }
    Ok(())
}

/// Planes whose rows are written from the last to the first, columns outside of rows; a part of each is read.
#[kiln::offload]
fn by_planes(x: &[u32], y: &mut [u32], planes: usize, n: usize) {
    let mut first: Vec<u32> = vec![0; planes * n * 8];
    global!(alloc first);
    #[kernel(tblock(planes), thread(2, 4))]
    {
        for j in 0..8 {
            for k in 0..planes {
                let plane = k * n * 8;
                for i in (0..n).rev() {
                    first[plane + i * 8 + j] = x[i] * (j as u32 + 1) + k as u32;
                }
            }
        }
        #[loop_partition(over_tblock)]
        for k in 0..planes {
            #[loop_partition(over_thread)]
            #[shared(compute(first))]
            for i in 0..n {
                #[loop_partition(over_thread)]
                for j in 1..7 {
                    let at = (k * n + i) * 8 + j;
                    y[at] = first[at - 1] + 2 * first[at + 1];
                }
            }
        }
    }
}

fn planes_in_any_order(jit: &Jit) -> Outcome {
    for (count, n) in [(3, 5), (1, 1), (2, 4)] {
        let x: Vec<u32> = (0..n as u32).map(|i| i * i + 1).collect();
        let (mut y, mut z) = (vec![0; count * n * 8], vec![0; count * n * 8]);
        by_planes.launch(jit, &x, &mut y, count, n)?;
        by_planes.sequential(&x, &mut z, count, n);
        assert_eq!(y, z, "{count} {n}");
    }
    Ok(())
}

/// Gives what blocks have computed, which is nowhere.
#[kiln::offload]
fn given_back(x: &[u32], double: &mut [u32], y: &mut [u32], n: usize) {
    #[kernel(tblock(2), thread(8))]
    {
        for i in 0..n {
            double[i] = 2 * x[i];
        }
        #[loop_partition(over_tblock, over_thread)]
        #[shared(compute(double))]
        for i in 0..n {
            y[i] = double[i] + 1;
        }
    }
}

/// Reads in a second region what blocks of the first one have computed.
#[kiln::offload]
fn read_behind(x: &[u32], y: &mut [u32], n: usize) {
    let mut double: Vec<u32> = vec![0; n];
    global!(alloc double);
    #[kernel(tblock(2), thread(8))]
    {
        for i in 0..n {
            double[i] = 2 * x[i];
        }
        #[loop_partition(over_tblock, over_thread)]
        #[shared(compute(double))]
        for i in 0..n {
            y[i] = double[i] + 1;
        }
    }
    #[kernel(tblock(2), thread(8))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..n {
            y[i] += double[i];
        }
    }
}

fn what_is_computed_is_not_kept(jit: &Jit) -> Outcome {
    let (x, mut y, mut double) = (vec![3; 20], vec![0; 20], vec![0; 20]);
    let errors = [
        given_back.launch(jit, &x, &mut double, &mut y, 20),
        read_behind.launch(jit, &x, &mut y, 20),
    ];
    for error in errors {
        let error = error.expect_err("the slice is used behind");
        let wanted = DirectiveError::NotKept {
            slice: "double".to_owned(),
            clause: "shared(compute(double))".to_owned(),
            memory: "shared memory",
        };
        assert_eq!(error.library::<DirectiveError>(), Some(&wanted));
    }
    Ok(())
}
