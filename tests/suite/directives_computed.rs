//! Slices that blocks compute in shared memory, as the loops before do that write them: tiles that overlap.

use kiln::directives::DirectiveError;
use kiln::prelude::*;

use super::{Outcome, chapter};

chapter![
    two_steps_of_a_stencil,
    two_steps_side_by_side,
    sums_of_windows,
    planes_in_any_order,
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
