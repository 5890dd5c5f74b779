//! Functions of directives, beside themselves as sequential functions.

use kiln::prelude::*;

use super::{Outcome, chapter};

chapter![
    products_of_matrices,
    steps_of_jacobi,
    data_stays_on_the_device,
    elements_that_the_host_keeps,
    the_host_has_its_turn,
    values_come_back,
    scalars_are_passed,
    one_thread_sums_up,
    columns_that_become_rows,
    regions_in_branches,
    empty_slices,
    wrong_launches_are_refused,
];

/// A product of an `n` by `k` and a `k` by `m` matrix.
#[kiln::offload]
fn multiply(a: &[f32], b: &[f32], c: &mut [f32], n: usize, m: usize, k: usize) {
    #[kernel(tblock(4, 2), thread(4, 8))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..n {
            #[loop_partition(over_tblock, over_thread)]
            for j in 0..m {
                let mut sum = 0.0;
                for kk in 0..k {
                    sum += a[i * k + kk] * b[kk * m + j];
                }
                c[i * m + j] = sum;
            }
        }
    }
}

fn products_of_matrices(jit: &Jit) -> Outcome {
    for (n, m, k) in [(33, 17, 5), (1, 1, 1), (8, 40, 3)] {
        let numbers = |len: usize| {
            (0..len)
                .map(|i| (i * 7 % 11) as f32 - 4.0)
                .collect::<Vec<_>>()
        };
        let (a, b) = (numbers(n * k), numbers(k * m));
        let (mut c, mut d) = (vec![0.0; n * m], vec![0.0; n * m]);
        multiply.launch(jit, &a, &b, &mut c, n, m, k)?;
        multiply.sequential(&a, &b, &mut d, n, m, k);
        assert_eq!(c, d);
    }
    Ok(())
}

/// Steps of Jacobi's method on an `n` by `n` grid.
#[kiln::offload]
fn relax(a: &mut [f32], b: &mut [f32], n: usize, steps: u32) {
    for _ in 0..steps {
        #[kernel(tblock(3, 2), thread(2, 8))]
        {
            #[loop_partition(over_tblock(CYCLIC), over_thread)]
            for i in 1..n - 1 {
                #[loop_partition(over_tblock, over_thread)]
                for j in 1..n - 1 {
                    let around = a[(i - 1) * n + j]
                        + a[(i + 1) * n + j]
                        + a[i * n + j - 1]
                        + a[i * n + j + 1];
                    b[i * n + j] = 0.25 * around;
                }
            }
        }
        #[kernel(tblock(3, 2), thread(2, 8), nowait)]
        {
            #[loop_partition(over_tblock, over_thread)]
            for i in 1..n - 1 {
                #[loop_partition(over_tblock, over_thread)]
                for j in 1..n - 1 {
                    a[i * n + j] = b[i * n + j];
                }
            }
        }
    }
}

fn steps_of_jacobi(jit: &Jit) -> Outcome {
    let n = 19;
    let start: Vec<f32> = (0..n * n).map(|i| (i * i % 17) as f32).collect();
    let (mut a, mut b) = (start.clone(), start.clone());
    let (mut c, mut d) = (start.clone(), start);
    let ((), report) = relax.launch_reported(jit, &mut a, &mut b, n, 10)?;
    relax.sequential(&mut c, &mut d, n, 10);
    assert_eq!((a, b), (c, d));
    assert_eq!(
        (report.uploads, report.downloads, report.launches.len()),
        (2, 2, 20),
        "{report:?}"
    );
    assert_eq!(report.uploaded_bytes, 2 * 4 * n * n);
    Ok(())
}

/// Jacobi's method with a grid of the device's own, of which regions read what they have written.
#[kiln::offload]
fn jacobi(a: &mut [f32], n: usize, steps: u32, reach: usize) {
    let mut b: Vec<f32> = vec![0.0; n * n];
    global!(alloc b);
    for _ in 0..steps {
        #[kernel(tblock(3, 2), thread(2, 8), nowait)]
        {
            #[loop_partition(over_tblock, over_thread)]
            for i in 1..n - 1 {
                #[loop_partition(over_tblock, over_thread)]
                #[shared(copyin(a))]
                for j in 1..n - 1 {
                    let at = i * n + j;
                    b[at] = 0.25 * (a[at - n] + a[at + n] + a[at - 1] + a[at + 1]);
                }
            }
        }
        #[kernel(tblock(3, 2), thread(2, 8), nowait)]
        {
            #[loop_partition(over_tblock, over_thread)]
            for i in 1..n - 1 {
                #[loop_partition(over_tblock, over_thread)]
                for j in 1..n - reach {
                    a[i * n + j] = b[i * n + j];
                }
            }
        }
    }
}

/// One copy there and one back for all steps, and none of the other grid; its border is not there.
fn data_stays_on_the_device(jit: &Jit) -> Outcome {
    for (n, steps) in [(19, 100), (2, 3), (12, 0)] {
        let start: Vec<f32> = (0..n * n).map(|i| (i * i % 17) as f32).collect();
        let (mut a, mut c) = (start.clone(), start);
        let ((), report) = jacobi.launch_reported(jit, &mut a, n, steps, 1)?;
        jacobi.sequential(&mut c, n, steps, 1);
        assert_eq!(a, c);
        let used = usize::from(steps > 0);
        assert_eq!(
            (report.uploads, report.downloads),
            (used, used),
            "{report:?}"
        );
        assert_eq!(report.uploaded_bytes, used * 4 * n * n);
    }
    let mut a = vec![1.0; 100];
    let refused = jacobi.launch(jit, &mut a, 10, 3, 0);
    let error = refused.expect_err("the border is read").to_string();
    assert!(
        error.contains("the read of `b` is of elements that"),
        "{error}"
    );
    assert_eq!(a, [1.0; 100]);
    Ok(())
}

#[kiln::offload]
fn some(x: &mut [u32], y: &mut [u32], n: usize) {
    global!(alloc x, y);
    #[kernel(tblock(2), thread(8))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..n {
            x[3 * i + 1] = 100 + i as u32;
            y[i] = 7;
        }
    }
    y[0] += 1;
    #[kernel(tblock(2), thread(8))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..n {
            y[i] += x[3 * i + 1];
        }
    }
}

/// Elements that no region writes are those of the host when a slice is copied back.
fn elements_that_the_host_keeps(jit: &Jit) -> Outcome {
    for n in [0, 1, 20] {
        let x: Vec<u32> = (0..3 * n as u32 + 2).collect();
        let y: Vec<u32> = (0..n as u32 + 5).collect();
        let (mut first, mut second) = ((x.clone(), y.clone()), (x, y));
        let ((), report) = some.launch_reported(jit, &mut first.0, &mut first.1, n)?;
        some.sequential(&mut second.0, &mut second.1, n);
        assert_eq!(first, second);
        // `y` comes back for the host's turn, and goes there again.
        assert_eq!((report.uploads, report.downloads), (1, 3), "{report:?}");
    }
    Ok(())
}

/// The host reads and writes between regions what they read and write.
#[kiln::offload]
fn in_turns(x: &mut [u32], y: &[u32], n: usize) {
    #[kernel(tblock(2), thread(32))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..n {
            x[i] += y[i];
        }
    }
    let first = x[0];
    for i in 0..n {
        x[i] = x[i] * 2 + first;
    }
    let last = if x[0] > 3 { x[n - 1] } else { 0 };
    #[kernel(tblock(2), thread(32))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..n {
            x[i] += y[i] * 3;
        }
    }
    x[0] += last;
}

fn the_host_has_its_turn(jit: &Jit) -> Outcome {
    let y: Vec<u32> = (0..100).collect();
    let (mut x, mut z) = (vec![5; 100], vec![5; 100]);
    let ((), report) = in_turns.launch_reported(jit, &mut x, &y, 100)?;
    in_turns.sequential(&mut z, &y, 100);
    assert_eq!(x, z);
    // `y` stays; `x` is written by the host between the regions.
    assert_eq!((report.uploads, report.downloads), (3, 2), "{report:?}");
    Ok(())
}

/// A vector of the function's own, and a value.
#[kiln::offload]
fn squares(n: usize) -> Vec<u32> {
    let mut x: Vec<u32> = vec![0; n];
    #[kernel(tblock(n.div_ceil(64).max(1)), thread(64))]
    {
        #[loop_partition(over_tblock(CYCLIC), over_thread)]
        for i in 0..n {
            x[i] = (i * i) as u32;
        }
    }
    x
}

fn values_come_back(jit: &Jit) -> Outcome {
    for n in [0, 1, 64, 200] {
        assert_eq!(squares.launch(jit, n)?, squares.sequential(n));
    }
    Ok(())
}

#[kiln::offload]
fn axpy(a: f64, up: bool, x: &[f64], y: &mut [f64], from: i32) {
    let shift: f64 = if up { 1.0 } else { -1.0 };
    let to: i32 = y.len() as i32;
    #[kernel(tblock(3), thread(16))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in (from..to).rev() {
            if up {
                y[i as usize] += a * x[i as usize];
            }
            y[i as usize] += shift;
        }
    }
}

fn scalars_are_passed(jit: &Jit) -> Outcome {
    let x: Vec<f64> = (0..77).map(f64::from).collect();
    for (up, from) in [(true, 0), (false, 5), (true, 77)] {
        let (mut y, mut z) = (x.clone(), x.clone());
        axpy.launch(jit, 2.5, up, &x, &mut y, from)?;
        axpy.sequential(2.5, up, &x, &mut z, from);
        assert_eq!(y, z);
    }
    Ok(())
}

/// Each block sums up a part in one of its threads, behind a barrier.
#[kiln::offload]
fn sums(x: &mut [u32], out: &mut [u32], parts: usize, size: usize) {
    #[kernel(tblock(parts as u32), thread(8))]
    {
        #[loop_partition(over_tblock)]
        for part in 0..parts {
            #[loop_partition(over_thread)]
            for i in 0..size {
                x[part * size + i] *= 3;
            }
            barrier!();
            #[singular]
            {
                let mut sum = 0;
                for i in 0..size {
                    sum += x[part * size + i];
                }
                out[part] = sum;
            }
        }
    }
}

fn one_thread_sums_up(jit: &Jit) -> Outcome {
    let start: Vec<u32> = (0..60).collect();
    let (mut x, mut out) = (start.clone(), vec![0; 5]);
    let (mut y, mut wanted) = (start, vec![0; 5]);
    sums.launch(jit, &mut x, &mut out, 5, 12)?;
    sums.sequential(&mut y, &mut wanted, 5, 12);
    assert_eq!((x, out), (y, wanted));
    Ok(())
}

#[kiln::offload]
fn in_branches(x: &mut [u32], rounds: u32) {
    let mut round = 0;
    while round < rounds {
        if round % 2 == 0 {
            #[kernel(tblock(1), thread(32))]
            {
                #[loop_partition(over_thread)]
                for i in 0..x.len() {
                    x[i] += 1;
                }
            }
        } else if x[0] > 1 {
            x[1] += 1;
        } else {
            {
                #[kernel(tblock(2), thread(32))]
                {
                    #[loop_partition(over_tblock, over_thread)]
                    for i in 0..x.len() {
                        x[i] *= 5;
                    }
                }
            }
        }
        round += 1;
    }
}

fn regions_in_branches(jit: &Jit) -> Outcome {
    for rounds in [0, 1, 2, 5] {
        let (mut x, mut y) = (vec![0; 50], vec![0; 50]);
        in_branches.launch(jit, &mut x, rounds)?;
        in_branches.sequential(&mut y, rounds);
        assert_eq!(x, y);
    }
    Ok(())
}

fn empty_slices(jit: &Jit) -> Outcome {
    in_turns_of_nothing.launch(jit, &mut [], &[])?;
    Ok(())
}

#[kiln::offload]
fn in_turns_of_nothing(x: &mut [u32], y: &[u32]) {
    #[kernel(tblock(2), thread(32))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..y.len() {
            x[i] = y[i];
        }
    }
}

#[kiln::offload]
fn shifted(x: &mut [u32], by: usize, blocks: u32) {
    #[kernel(tblock(blocks), thread(16))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in by..x.len() {
            x[i] = x[i - by] + 1;
        }
    }
}

fn wrong_launches_are_refused(jit: &Jit) -> Outcome {
    let mut x: Vec<u32> = (0..100).collect();
    let wrong = shifted
        .launch(jit, &mut x, 3, 2)
        .expect_err("iterations depend on each other");
    assert!(wrong.to_string().contains("that are 3 apart"), "{wrong}");
    assert_eq!(x, (0..100).collect::<Vec<_>>(), "nothing was launched");
    // Each half of the elements is read or written.
    let mut y = x.clone();
    shifted.launch(jit, &mut x, 50, 2)?;
    shifted.sequential(&mut y, 50, 2);
    assert_eq!(x, y);
    let wrong = shifted
        .launch(jit, &mut x, 50, 0)
        .expect_err("a grid without blocks");
    assert!(wrong.to_string().contains("each of at least 1"), "{wrong}");
    Ok(())
}

/// Elements column by column, of which neighbours along rows go to neighbouring threads.
#[kiln::offload]
fn scaled(x: &[u32], y: &mut [u32], n: usize, m: usize) {
    #[kernel(tblock(3), thread(8))]
    {
        #[loop_partition(over_thread)]
        #[loop_transform(interchange)]
        for j in 0..m {
            #[loop_partition(over_tblock)]
            for i in 1..n {
                y[i * m + j] = 3 * x[i * m + j] + x[j];
            }
        }
    }
}

fn columns_that_become_rows(jit: &Jit) -> Outcome {
    for (n, m) in [(7, 13), (1, 5), (4, 0)] {
        let x: Vec<u32> = (0..(n * m) as u32).map(|i| i * i % 17).collect();
        let (mut y, mut z) = (vec![1; n * m], vec![1; n * m]);
        let ((), report) = scaled.launch_reported(jit, &x, &mut y, n, m)?;
        scaled.sequential(&x, &mut z, n, m);
        assert_eq!(y, z, "{n} {m}");
        let guidance = &report.guidance[0];
        // Of an empty nest nothing is known.
        let mut aparts = guidance.accesses.iter().map(|access| access.apart);
        let is_empty = n == 1 || m == 0;
        assert!(
            is_empty || aparts.all(|apart| apart == Some(1)),
            "{guidance}"
        );
    }
    Ok(())
}
