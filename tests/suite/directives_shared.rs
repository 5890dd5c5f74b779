//! Slices that are staged in shared memory, beside the functions as they are written: sections of rows, columns, tiles
//! and windows, with halos over the ends of slices, and batches that are not full.

use kiln::directives::{DirectiveError, Known, Program, Slices, marks};
use kiln::prelude::*;

use super::{Outcome, chapter};

chapter![
    products_by_tiles,
    products_side_by_side,
    products_by_whole_groups,
    groups_at_the_edge,
    lanes_beyond_the_end,
    side_by_side_from_end_to_end,
    stencils_with_halos,
    ends_of_a_slice,
    transpositions,
    windows_of_the_turn,
    turns_that_count_down,
    loops_over_threads_within,
    grids_of_four_dimensions,
    indices_are_checked,
    other_arguments_are_refused,
];

/// Numbers of which sums are exact.
fn numbers(len: usize) -> Vec<f32> {
    (0..len).map(|i| (i * 7 % 11) as f32 - 4.0).collect()
}

/// A product of an `n` by `k` and a `k` by `m` matrix, by tiles of 8 columns and rows.
#[kiln::offload]
fn multiply(a: &[f32], b: &[f32], c: &mut [f32], n: usize, m: usize, k: usize) {
    #[kernel(tblock(2, 3), thread(4, 8))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..n {
            #[loop_partition(over_tblock(CYCLIC), over_thread)]
            for j in 0..m {
                let mut sum = 0.0;
                #[shared(copyin(a, b))]
                for part in (0..k).step_by(8) {
                    for kk in part..(part + 8).min(k) {
                        sum += a[i * k + kk] * b[kk * m + j];
                    }
                }
                c[i * m + j] = sum;
            }
        }
    }
}

fn products_by_tiles(jit: &Jit) -> Outcome {
    for (n, m, k) in [(33, 17, 21), (1, 1, 1), (5, 3, 0)] {
        let (a, b) = (numbers(n * k), numbers(k * m));
        let (mut c, mut d) = (vec![0.5; n * m], vec![0.5; n * m]);
        let ((), report) = multiply.launch_reported(jit, &a, &b, &mut c, n, m, k)?;
        multiply.sequential(&a, &b, &mut d, n, m, k);
        assert_eq!(c, d, "{n} {m} {k}");
        let schedule = report.launches[0].to_string();
        assert!(
            schedule.contains("loop 2: sequential shared(0,1);"),
            "{schedule}"
        );
    }
    Ok(())
}

/// Two steps of Jacobi's method on an `n` by `n` grid, staged by rows and by tiles.
#[kiln::offload]
fn relax(a: &mut [f32], b: &mut [f32], n: usize) {
    #[kernel(tblock(3, 2), thread(2, 8))]
    {
        #[loop_partition(over_tblock(CYCLIC), over_thread)]
        for i in 1..n - 1 {
            #[loop_partition(over_tblock, over_thread)]
            #[shared(copyin(a))]
            for j in 1..n - 1 {
                let (above, below) = (a[(i - 1) * n + j], a[(i + 1) * n + j]);
                b[i * n + j] = above + below + a[i * n + j - 1] + a[i * n + j + 1];
            }
        }
    }
    #[kernel(tblock(3), thread(16))]
    {
        #[shared(copyin(b))]
        #[loop_partition(over_tblock)]
        for i in 1..n - 1 {
            #[loop_partition(over_thread)]
            for j in 1..n - 1 {
                let (above, below) = (b[(i - 1) * n + j], b[(i + 1) * n + j]);
                a[i * n + j] = above + below + b[i * n + j - 1] + b[i * n + j + 1];
            }
        }
    }
}

fn stencils_with_halos(jit: &Jit) -> Outcome {
    for n in [2, 19] {
        let (mut a, mut b) = (numbers(n * n), vec![1.0; n * n]);
        let (mut c, mut d) = (a.clone(), b.clone());
        relax.launch(jit, &mut a, &mut b, n)?;
        relax.sequential(&mut c, &mut d, n);
        assert_eq!((a, b), (c, d), "{n}");
    }
    Ok(())
}

/// A sum of three neighbours, of which the first and last element have two.
#[kiln::offload]
fn neighbours(x: &[u32], y: &mut [u32], n: usize) {
    #[kernel(tblock(2), thread(4))]
    {
        #[loop_partition(over_tblock, over_thread)]
        #[shared(copyin(x))]
        for i in 0..n {
            let mut sum = x[i];
            if i > 0 {
                sum += 3 * x[i - 1];
            }
            if i + 1 < n {
                sum += 5 * x[i + 1];
            }
            y[i] = sum;
        }
    }
}

fn ends_of_a_slice(jit: &Jit) -> Outcome {
    for n in [0, 1, 13] {
        let x: Vec<u32> = (0..n as u32).map(|i| i * i + 1).collect();
        let (mut y, mut z) = (vec![0; n], vec![0; n]);
        neighbours.launch(jit, &x, &mut y, n)?;
        neighbours.sequential(&x, &mut z, n);
        assert_eq!(y, z, "{n}");
    }
    Ok(())
}

/// A transposition of an `n` by `m` matrix, with every third element of a row of `z`.
#[kiln::offload]
fn transpose(x: &[u32], z: &[u32], y: &mut [u32], n: usize, m: usize) {
    #[kernel(tblock(2, 2), thread(4, 2))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..m {
            #[loop_partition(over_tblock, over_thread)]
            #[shared(copyin(x, z), nopad)]
            for j in 0..n {
                y[i * n + j] = x[j * m + i] + z[3 * j + 1];
            }
        }
    }
}

fn transpositions(jit: &Jit) -> Outcome {
    let (n, m) = (11, 7);
    let x: Vec<u32> = (0..n as u32 * m as u32).collect();
    let z: Vec<u32> = (0..3 * n as u32).map(|i| 1000 * i).collect();
    let (mut y, mut w) = (vec![0; n * m], vec![0; n * m]);
    transpose.launch(jit, &x, &z, &mut y, n, m)?;
    transpose.sequential(&x, &z, &mut w, n, m);
    assert_eq!(y, w);
    Ok(())
}

/// Sums over windows that begin where the turn says, each with a weight.
#[kiln::offload]
fn windows(x: &[f64], weights: &[f64], y: &mut [f64], n: usize, width: usize) {
    #[kernel(tblock(2), thread(8))]
    {
        #[loop_partition(over_tblock(CYCLIC), over_thread)]
        #[shared(copyin(x, weights))]
        for i in 0..n {
            let mut sum = 0.0;
            for w in 0..width {
                sum += x[2 * i + w] * weights[w];
            }
            y[i] = sum;
        }
    }
}

fn windows_of_the_turn(jit: &Jit) -> Outcome {
    for (n, width) in [(37, 5), (20, 2)] {
        let x: Vec<f64> = numbers(2 * n + width).into_iter().map(f64::from).collect();
        let weights: Vec<f64> = (0..width).map(|w| w as f64 + 0.5).collect();
        let (mut y, mut z) = (vec![0.0; n], vec![0.0; n]);
        windows.launch(jit, &x, &weights, &mut y, n, width)?;
        windows.sequential(&x, &weights, &mut z, n, width);
        assert_eq!(y, z);
    }
    Ok(())
}

/// Indices of 32 and 64 bits with signs, loops that count down, and steps.
#[kiln::offload]
fn down(x: &[u32], y: &mut [u32], n: i32, far: i64) {
    #[kernel(tblock(3), thread(4))]
    {
        #[loop_partition(over_tblock, over_thread)]
        #[shared(copyin(x))]
        for i in (0..n).rev() {
            let mut sum = 0;
            for d in (0..far).rev() {
                sum = 2 * sum + x[(n + far as i32 - 1 - i - d as i32) as usize];
            }
            y[i as usize] = sum;
        }
    }
}

fn turns_that_count_down(jit: &Jit) -> Outcome {
    let (n, far) = (29, 3);
    let x: Vec<u32> = (0..40).map(|i| i * i).collect();
    let (mut y, mut z) = (vec![0; 29], vec![0; 29]);
    down.launch(jit, &x, &mut y, n, far)?;
    down.sequential(&x, &mut z, n, far);
    assert_eq!(y, z);
    Ok(())
}

/// Two stages of one loop nest, of which the inner one is in a batch that may not be full, and a part that one thread
/// executes.
#[kiln::offload]
fn two_stages(x: &[u32], w: &[u32], y: &mut [u32], first: &mut [u32], n: usize, m: usize) {
    #[kernel(tblock(2), thread(8))]
    {
        #[loop_partition(over_tblock)]
        #[shared(copyin(w))]
        for i in 0..n {
            #[singular]
            {
                first[i] = w[i] + w[0];
            }
            #[loop_partition(over_thread)]
            for j in 0..m {
                let mut sum = w[i];
                #[shared(copyin(x))]
                for part in 0..3usize {
                    sum = 2 * sum + x[(i + part) * m + j];
                }
                y[i * m + j] = sum + w[j];
            }
        }
    }
}

fn loops_over_threads_within(jit: &Jit) -> Outcome {
    let (n, m) = (5, 13);
    let x: Vec<u32> = (0..(n as u32 + 3) * m as u32).collect();
    let w: Vec<u32> = (0..20).map(|i| 7 * i).collect();
    let (mut y, mut first) = (vec![0; n * m], vec![0; n]);
    let (mut z, mut second) = (y.clone(), first.clone());
    two_stages.launch(jit, &x, &w, &mut y, &mut first, n, m)?;
    two_stages.sequential(&x, &w, &mut z, &mut second, n, m);
    assert_eq!((y, first), (z, second));
    Ok(())
}

/// Elements of all threads of a grid that lies along one dimension of the hardware.
#[kiln::offload]
fn of_four(x: &[u32], y: &mut [u32]) {
    #[kernel(tblock(1, 2, 1, 2), thread(2, 3, 1, 4))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for a in 0..3usize {
            #[loop_partition(over_tblock, over_thread)]
            for b in 0..4usize {
                #[loop_partition(over_tblock, over_thread)]
                for c in 0..2usize {
                    #[loop_partition(over_tblock, over_thread)]
                    #[shared(copyin(x))]
                    for d in 0..9usize {
                        let at = ((a * 4 + b) * 2 + c) * 9 + d;
                        y[at] = x[at] + x[at + 1];
                    }
                }
            }
        }
    }
}

fn grids_of_four_dimensions(jit: &Jit) -> Outcome {
    let x: Vec<u32> = (0..217).map(|i| i * 3).collect();
    let (mut y, mut z) = (vec![0; 216], vec![0; 216]);
    of_four.launch(jit, &x, &mut y)?;
    of_four.sequential(&x, &mut z);
    assert_eq!(y, z);
    Ok(())
}

#[device_fn]
fn moved(x: &[u32], y: &mut [u32], n: usize) {
    marks::partition(1, 1);
    marks::shared(x.len() as u32);
    for i in 0..n {
        y[i] = x[i + 3];
    }
}

/// An index behind the end is found as it is without staging.
fn indices_are_checked(jit: &Jit) -> Outcome {
    let program = Program::of(&DeviceFn::of::<moved>()?)?;
    let schedule = program.schedule(&[2], &[8]);
    let known = [Known::Length(30), Known::Length(30), Known::Number(30)];
    let scheduled = program.apply_for(&schedule, &known)?;
    let (x, mut y) = (jit.upload(&[7u32; 30])?, jit.zeros::<u32>(30)?);
    let (grid, block) = (scheduled.grid(), scheduled.block());
    let launched = jit
        .launch(scheduled.kernel(), grid, block, args!(&x, &mut y, 30u32))
        .and_then(|()| jit.synchronize());
    let error = launched.expect_err("it is out of bounds").to_string();
    assert!(error.contains("index 3") && error.contains("30"), "{error}");
    Ok(())
}

/// A kernel whose sections are those of other arguments says so.
fn other_arguments_are_refused(jit: &Jit) -> Outcome {
    let program = Program::of(&DeviceFn::of::<moved>()?)?;
    let schedule = program.schedule(&[2], &[8]);
    let known = [Known::Length(30), Known::Length(30), Known::Number(27)];
    program.verify(&schedule, &known)?;
    let scheduled = program.apply_for(&schedule, &known)?;
    let (x, mut y) = (jit.upload(&[7u32; 30])?, jit.zeros::<u32>(30)?);
    let (grid, block) = (scheduled.grid(), scheduled.block());
    let mut launch = |n: u32| {
        jit.launch(scheduled.kernel(), grid, block, args!(&x, &mut y, n))?;
        jit.synchronize()
    };
    launch(27)?;
    let error = launch(26).expect_err("it is for 27").to_string();
    assert!(
        error.contains("is for the numbers and lengths that it was made for"),
        "{error}"
    );
    for (grid, block) in [(2, 16), (1, 8)] {
        let launched = jit.launch(scheduled.kernel(), grid, block, args!(&x, &mut y, 27u32));
        let error = launched.and_then(|()| jit.synchronize());
        let error = error.expect_err("it is for 2 blocks of 8").to_string();
        assert!(
            error.contains("is for the grid that it was made for"),
            "{error}"
        );
    }
    // Without the numbers nothing is known of how far the loop goes.
    assert!(program.apply(&schedule).is_err());
    let mut written = schedule;
    written.loops[0].shared = Slices::default().with(1);
    let refused = program.verify(&written, &known);
    assert!(matches!(refused, Err(DirectiveError::Shared { .. })));
    Ok(())
}

/// A product by tiles of 8 columns and rows, of which a thread has 3 by 2 elements.
#[kiln::offload]
fn coarsened(a: &[f32], b: &[f32], c: &mut [f32], n: usize, m: usize, k: usize) {
    #[kernel(tblock(2, 3), thread(4, 8))]
    {
        #[loop_partition(over_tblock, over_thread, coarsen(3))]
        for i in 0..n {
            #[loop_partition(over_tblock(CYCLIC), over_thread, coarsen(2))]
            for j in 0..m {
                let mut sum = 0.0;
                #[shared(copyin(a, b))]
                #[loop_transform(tile(8), unroll(4))]
                for kk in 0..k {
                    sum += a[i * k + kk] * b[kk * m + j];
                }
                c[i * m + j] = sum;
            }
        }
    }
}

fn products_side_by_side(jit: &Jit) -> Outcome {
    for (n, m, k) in [(33, 17, 21), (24, 96, 16), (1, 1, 1)] {
        let (a, b) = (numbers(n * k), numbers(k * m));
        let (mut c, mut d) = (vec![0.5; n * m], vec![0.5; n * m]);
        let ((), report) = coarsened.launch_reported(jit, &a, &b, &mut c, n, m, k)?;
        coarsened.sequential(&a, &b, &mut d, n, m, k);
        assert_eq!(c, d, "{n} {m} {k}");
        let schedule = report.launches[0].to_string();
        assert!(
            schedule.ends_with("loop 2: sequential shared(0,1) tile(8) unroll(4)"),
            "{schedule}"
        );
    }
    Ok(())
}

/// A product by tiles of 12 rows and 16 columns, of whose blocks the last ones have fewer or none.
#[kiln::offload]
fn by_groups(a: &[f32], b: &[f32], c: &mut [f32], n: usize, m: usize, k: usize, more: u32) {
    #[kernel(tblock((n.div_ceil(12) as u32).max(1) + more, (m.div_ceil(16) as u32).max(1) + more), thread(4, 8))]
    {
        #[loop_partition(over_tblock, over_thread, coarsen(3))]
        for i in 0..n {
            #[loop_partition(over_tblock, over_thread, coarsen(2))]
            for j in 0..m {
                let mut sum = 0.0;
                #[shared(copyin(a, b))]
                #[loop_transform(tile(4), unroll(2))]
                for kk in 0..k {
                    sum += a[i * k + kk] * b[kk * m + j];
                }
                c[i * m + j] = sum;
            }
        }
    }
}

fn products_by_whole_groups(jit: &Jit) -> Outcome {
    let sizes = [
        (0, 5, 3, 0),
        (1, 15, 4, 1),
        (11, 16, 5, 0),
        (12, 17, 4, 1),
        (37, 33, 7, 0),
    ];
    for (n, m, k, more) in sizes {
        let (a, b) = (numbers(n * k), numbers(k * m));
        let (mut c, mut d) = (vec![0.5; n * m], vec![0.5; n * m]);
        by_groups.launch(jit, &a, &b, &mut c, n, m, k, more)?;
        by_groups.sequential(&a, &b, &mut d, n, m, k, more);
        assert_eq!(c, d, "{n} {m} {k} {more}");
    }
    Ok(())
}

/// Random sizes of a product, of which neither blocks nor groups nor tiles are full.
fn groups_at_the_edge(jit: &Jit) -> Outcome {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut below = |end: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % end) as usize
    };
    for _ in 0..4 {
        let (n, m, k, more) = (below(40), below(50), below(12), below(2) as u32);
        let (a, b) = (numbers(n * k), numbers(k * m));
        let (mut c, mut d) = (vec![0.5; n * m + 3], vec![0.5; n * m + 3]);
        let mut e = c.clone();
        by_groups.launch(jit, &a, &b, &mut c, n, m, k, more)?;
        coarsened.launch(jit, &a, &b, &mut e, n, m, k)?;
        by_groups.sequential(&a, &b, &mut d, n, m, k, more);
        assert_eq!((&c, &e), (&d, &d), "{n} {m} {k} {more}");
    }
    Ok(())
}

/// Iterations side by side with all that lanes beyond the end must not do: writes to two slices, reads of what is written,
/// an index and a condition that come of staged elements, arrays of their own, loops whose ends are the iteration's.
#[kiln::offload]
fn beyond(table: &[u32], x: &[u32], y: &mut [u32], z: &mut [u32], n: usize, from: i32) {
    #[kernel(tblock(2, 2), thread(2, 4))]
    {
        #[loop_partition(over_tblock, over_thread, coarsen(2))]
        for i in 0..n {
            #[loop_partition(over_tblock(CYCLIC), over_thread, coarsen(3))]
            for j in (from..n as i32).rev() {
                let mut own = [0u32; 4];
                let at = i * n + j as usize;
                let mut sum = z[at];
                #[shared(copyin(x))]
                for k in 0..4usize {
                    let next = x[i * 4 + k] + x[j as usize * 4 + k];
                    own[k] = 3 * next;
                    if next > 9 {
                        sum += next;
                    }
                }
                for k in 0..i + 1 {
                    sum = sum % 1000 * 5 + own[k % 4] + table[k];
                }
                y[at] = sum + table[own[1] as usize % n];
                z[at] = y[at] + 1;
            }
        }
    }
}

fn lanes_beyond_the_end(jit: &Jit) -> Outcome {
    for (n, from) in [(1, 0), (5, 0), (7, 3), (16, 1), (3, 3)] {
        let table: Vec<u32> = (0..n as u32).map(|i| 10 + i * i).collect();
        let x: Vec<u32> = (0..4 * n as u32).map(|i| i * 7 % 11).collect();
        let y: Vec<u32> = (0..(n * n) as u32).collect();
        let (mut first, mut second) = ((y.clone(), y.clone()), (y.clone(), y));
        beyond.launch(jit, &table, &x, &mut first.0, &mut first.1, n, from)?;
        beyond.sequential(&table, &x, &mut second.0, &mut second.1, n, from);
        assert_eq!(first, second, "{n} {from}");
    }
    Ok(())
}

/// Loops over as much as a signed type holds, by tiles and side by side.
#[kiln::offload]
fn from_end_to_end(x: &mut [u32], y: &mut [u32], first: i8, last: i8) {
    #[kernel(tblock(1), thread(2))]
    {
        #[loop_transform(unroll_and_jam(2))]
        for i in first..last {
            x[(i as i32 + 128) as usize] = i as u32;
        }
        #[loop_transform(tile(2), unroll_and_jam(2))]
        for i in first..last {
            y[(i as i32 + 128) as usize] = i as u32;
        }
    }
}

fn side_by_side_from_end_to_end(jit: &Jit) -> Outcome {
    let [[mut x, mut y], [mut x_on_host, mut y_on_host]] =
        [(); 2].map(|()| [(); 2].map(|()| vec![7; 256]));
    from_end_to_end.launch(jit, &mut x, &mut y, i8::MIN, i8::MAX)?;
    from_end_to_end.sequential(&mut x_on_host, &mut y_on_host, i8::MIN, i8::MAX);
    assert_eq!((x, y), (x_on_host, y_on_host));
    Ok(())
}
