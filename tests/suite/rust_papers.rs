//! Kernels of papers as `#[kernel]` functions: "Scalable Parallel Programming with CUDA" (Nickolls,
//! Buck, Garland, Skadron 2008) and "Effective Extensible Programming: Unleashing Julia on GPUs"
//! (Besard, Foket, De Sutter 2018). Figures and listings are named where they stand.
#![allow(clippy::assign_op_pattern, reason = "as the papers write it")]

use kiln::core::front::LazyKernel;
use kiln::prelude::*;

use super::{Outcome, chapter, exact};

chapter![
    saxpy_of_nickolls,
    sparse_matrix_times_vector,
    reduction_of_nickolls,
    vector_addition_of_besard,
    fused_broadcast_of_besard,
    reduction_of_points_of_besard,
];

/// Figure 1 of Nickolls: `y = alpha * x + y`.
#[kernel]
fn saxpy_parallel(n: u32, alpha: f32, x: &[f32], y: &mut [f32]) {
    let i = block_idx().x * block_dim().x + thread_idx().x;
    if i < n as usize {
        y[i] = alpha * x[i] + y[i];
    }
}

fn saxpy_of_nickolls(jit: &Jit) -> Outcome {
    let jit = exact(jit);
    for n in [1usize, 255, 256, 257, 5000] {
        let host: Vec<f32> = (0..n).map(|i| i as f32 * 0.25).collect();
        let x = jit.upload(&host)?;
        let mut y = jit.upload(&host)?;
        let grid = n.div_ceil(256) as u32;
        saxpy_parallel.launch(&jit, (grid, 256), n as u32, 2.0, &x, &mut y)?;
        let want: Vec<f32> = host.iter().map(|x| 2.0 * x + x).collect();
        assert_eq!(y.to_vec()?, want, "{n} elements");
    }
    Ok(())
}

/// Figure 7 of Nickolls: one row times a vector. C++ passes `Aj + row_begin` and `Av + row_begin`.
#[device_fn]
fn multiply_row(begin: u32, end: u32, columns: &[u32], values: &[f32], x: &[f32]) -> f32 {
    let mut sum = 0.0;
    for at in begin as usize..end as usize {
        sum += values[at] * x[columns[at] as usize];
    }
    sum
}

/// Figure 8 of Nickolls: a compressed sparse row matrix times a vector, one thread a row.
#[kernel]
fn csrmul_kernel(rows: &[u32], columns: &[u32], values: &[f32], x: &[f32], y: &mut [f32]) {
    let row = block_idx().x * block_dim().x + thread_idx().x;
    if row < y.len() {
        y[row] = multiply_row(rows[row], rows[row + 1], columns, values, x);
    }
}

/// Threads of a block of [`csrmul_cached`].
const BLOCK: usize = 64;

/// Figure 9 of Nickolls: the part of `x` that belongs to the rows of the block is kept in shared
/// memory.
#[kernel]
fn csrmul_cached(rows: &[u32], columns: &[u32], values: &[f32], x: &[f32], y: &mut [f32]) {
    let cache = shared!([f32; BLOCK]);
    let block_begin = block_idx().x * block_dim().x;
    let block_end = block_begin + block_dim().x;
    let row = block_begin + thread_idx().x;
    if row < y.len() {
        cache[thread_idx().x] = x[row];
    }
    barrier();
    if row < y.len() {
        let mut sum = 0.0;
        for at in rows[row]..rows[row + 1] {
            let column = columns[at as usize] as usize;
            let x_j = if column >= block_begin && column < block_end {
                cache[column - block_begin]
            } else {
                x[column]
            };
            sum += values[at as usize] * x_j;
        }
        y[row] = sum;
    }
}

/// One warp a row, which suits long rows: lanes take every 32nd element, shuffles add them up.
#[kernel]
fn csrmul_warp(rows: &[u32], columns: &[u32], values: &[f32], x: &[f32], y: &mut [f32]) {
    let row = global_id().x / 32;
    // All lanes of a warp have one row, so that they leave together.
    if row >= y.len() {
        return;
    }
    let mut sum = 0.0;
    for at in (rows[row] + lane_id()..rows[row + 1]).step_by(32) {
        sum += values[at as usize] * x[columns[at as usize] as usize];
    }
    for delta in [16, 8, 4, 2, 1] {
        sum += shuffle_down(FULL_MASK, sum, delta, 32);
    }
    if lane_id() == 0 {
        y[row] = sum;
    }
}

/// A matrix of compressed rows.
struct Sparse {
    rows: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<f32>,
}

/// Rows of 0 to 70 elements, most of them near the diagonal. All numbers are small integers, so
/// that sums are exact in any order.
fn sparse(n: u32) -> Sparse {
    let mut matrix = Sparse {
        rows: vec![0],
        columns: Vec::new(),
        values: Vec::new(),
    };
    for row in 0..n {
        let count = (row * 7919) % 71;
        for k in 0..count {
            let near = (row + n + k).wrapping_sub(count / 2) % n;
            let column = if k % 5 == 0 { k * 977 % n } else { near };
            matrix.columns.push(column);
            matrix.values.push((k % 7) as f32 - 3.0);
        }
        matrix.rows.push(matrix.columns.len() as u32);
    }
    matrix
}

impl Sparse {
    fn times(&self, x: &[f32]) -> Vec<f32> {
        let row = |ends: &[u32]| {
            let elements = ends[0] as usize..ends[1] as usize;
            elements.fold(0.0, |sum, i| {
                sum + self.values[i] * x[self.columns[i] as usize]
            })
        };
        self.rows.windows(2).map(row).collect()
    }
}

fn sparse_matrix_times_vector(jit: &Jit) -> Outcome {
    let n = 300u32;
    let matrix = sparse(n);
    let host: Vec<f32> = (0..n).map(|i| (i % 17) as f32 - 8.0).collect();
    let want = matrix.times(&host);
    let rows = jit.upload(&matrix.rows)?;
    let columns = jit.upload(&matrix.columns)?;
    let values = jit.upload(&matrix.values)?;
    let x = jit.upload(&host)?;
    let by_threads = (n.div_ceil(64), BLOCK as u32);
    let by_warps = ((n * 32).div_ceil(128), 128);
    let kernels: [(&LazyKernel, (u32, u32)); 3] = [
        (&csrmul_kernel, by_threads),
        (&csrmul_cached, by_threads),
        (&csrmul_warp, by_warps),
    ];
    for (kernel, (grid, block)) in kernels {
        let mut y = jit.upload(&vec![f32::NAN; n as usize])?;
        let args = args!(&rows, &columns, &values, &x, &mut y);
        jit.launch(kernel, grid, block, args)?;
        jit.synchronize()?;
        assert_eq!(y.to_vec()?, want, "{}", kernel.name());
    }
    Ok(())
}

/// Figure 10 of Nickolls: a tree in shared memory, then one atomic addition a block.
#[kernel]
fn plus_reduce(input: &[i32], total: &mut [i32]) {
    let x = shared!([i32; 256]);
    let tid = thread_idx().x;
    let i = block_idx().x * block_dim().x + tid;
    x[tid] = if i < input.len() { input[i] } else { 0 };
    barrier();
    let mut s = block_dim().x / 2;
    while s > 0 {
        if tid < s {
            x[tid] += x[tid + s];
        }
        barrier();
        s /= 2;
    }
    if tid == 0 {
        atomic_add(&mut total[0], x[tid]);
    }
}

fn reduction_of_nickolls(jit: &Jit) -> Outcome {
    for (n, block) in [(1, 256), (1000, 256), (4096, 128), (77, 64), (300, 1)] {
        let host: Vec<i32> = (0..n).map(|i| i * i - 500).collect();
        let input = jit.upload(&host)?;
        let mut total = jit.zeros::<i32>(1)?;
        let grid = grid_for(host.len(), block);
        jit.launch(&plus_reduce, grid, block, args!(&input, &mut total))?;
        let want = host.iter().fold(0i32, |sum, x| sum.wrapping_add(*x));
        assert_eq!(total.to_vec()?, [want], "{n} elements, blocks of {block}");
    }
    Ok(())
}

/// Listing 6 of Besard: vector addition. Indices begin at 0 here.
#[kernel]
fn vadd<T: Num>(a: &[T], b: &[T], c: &mut [T]) {
    let i = block_idx().x * block_dim().x + thread_idx().x;
    c[i] = a[i] + b[i];
}

fn vector_addition_of_besard(jit: &Jit) -> Outcome {
    let a: Vec<f32> = (0..12).map(|i| i as f32).collect();
    let b: Vec<f32> = (0..12).map(|i| i as f32 * 100.0).collect();
    let (da, db) = (jit.upload(&a)?, jit.upload(&b)?);
    let mut dc = jit.zeros::<f32>(12)?;
    jit.launch(&vadd, 1, 12, args!(&da, &db, &mut dc))?;
    let want: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
    assert_eq!(dc.to_vec()?, want);
    // The same function for another type is another specialization.
    let (da, db) = (jit.upload(&[1u64 << 40; 3])?, jit.upload(&[5u64; 3])?);
    let mut dc = jit.zeros::<u64>(3)?;
    jit.launch(&vadd, 3, 1, args!(&da, &db, &mut dc))?;
    assert_eq!(dc.to_vec()?, [(1u64 << 40) + 5; 3]);
    Ok(())
}

/// The user's function of listing 8 of Besard, `f(x) = 3x^2 + 5x + 2`.
#[device_fn]
fn f(x: f64) -> f64 {
    3.0 * x.powi(2) + 5.0 * x + 2.0
}

/// Listing 9 of Besard: the fused expression of listing 8 as one writes it by hand.
#[kernel]
fn broadcast(x: &[f64], y: &mut [f64]) {
    let i = global_id().x;
    if i < y.len() {
        y[i] = f(2.0 * x[i].powi(2) + 6.0 * x[i].powi(3) - x[i].sqrt());
    }
}

fn fused_broadcast_of_besard(jit: &Jit) -> Outcome {
    let jit = exact(jit);
    let host: Vec<f64> = (0..1000).map(|i| f64::from(i) / 100.0).collect();
    let x = jit.upload(&host)?;
    let mut y = jit.zeros::<f64>(host.len())?;
    let grid = grid_for(host.len(), 128);
    jit.launch(&broadcast, grid, 128, args!(&x, &mut y))?;
    let by_hand = y.to_vec()?;
    // Listing 8: the same from an array expression.
    let arrays = Arrays::new(&jit);
    let x = arrays.vector(host.clone())?;
    let t = 2.0 * x.powi(2) + 6.0 * x.powi(3) - x.sqrt();
    let fused = t.map(device!(f)).eval()?;
    assert_eq!(arrays.launches(), 1);
    for ((x, by_hand), fused) in host.iter().zip(by_hand).zip(fused.to_vec()?) {
        // The host squares by multiplication, too: `powi` in std promises no bits.
        let t = 2.0 * (x * x) + 6.0 * (x * (x * x)) - x.sqrt();
        let want = 3.0 * (t * t) + 5.0 * t + 2.0;
        assert_eq!(by_hand.to_bits(), want.to_bits(), "by hand, of {x}");
        assert_eq!(fused.to_bits(), want.to_bits(), "as an expression, of {x}");
    }
    Ok(())
}

/// The point of listing 10 of Besard: 128 bits.
#[derive(KernelType, Copy, Clone, Debug, PartialEq, Eq)]
#[repr(C)]
struct Point {
    x: i64,
    y: i64,
}

/// `+` of points.
#[device_fn]
fn plus(a: Point, b: Point) -> Point {
    Point {
        x: a.x + b.x,
        y: a.y + b.y,
    }
}

/// The sum of the points of a warp, in its first lane.
#[device_fn]
fn warp_sum(mut sum: Point) -> Point {
    for delta in [16, 8, 4, 2, 1] {
        sum = plus(sum, shuffle_down(FULL_MASK, sum, delta, 32));
    }
    sum
}

/// Listing 10 of Besard, `reduce(+, Point(0, 0), X)`, by one block: a grid-stride loop, shuffles in
/// each warp, then the first warp adds up what the warps have.
#[kernel]
fn reduce_points(points: &[Point], out: &mut [Point]) {
    let partial = shared!([Point; 32]);
    let zero = Point { x: 0, y: 0 };
    let mut sum = zero;
    for i in (thread_idx().x..points.len()).step_by(block_dim().x) {
        sum = plus(sum, points[i]);
    }
    sum = warp_sum(sum);
    let (warp, lane) = (warp_id() as usize, lane_id() as usize);
    if lane == 0 {
        partial[warp] = sum;
    }
    barrier();
    if warp == 0 {
        let warps = (block_dim().x + 31) / 32;
        sum = if lane < warps { partial[lane] } else { zero };
        sum = warp_sum(sum);
        if lane == 0 {
            out[0] = sum;
        }
    }
}

fn reduction_of_points_of_besard(jit: &Jit) -> Outcome {
    for (n, block) in [(0, 32), (5, 32), (31, 64), (4000, 256), (1000, 1024)] {
        let host: Vec<Point> = (0..n).map(|i| Point { x: i, y: -3 * i }).collect();
        let points = jit.upload(&host)?;
        let mut out = jit.zeros::<Point>(1)?;
        jit.launch(&reduce_points, 1, block, args!(&points, &mut out))?;
        let x: i64 = (0..n).sum();
        let want = Point { x, y: -3 * x };
        assert_eq!(out.to_vec()?, [want], "{n} points, {block} threads");
    }
    Ok(())
}
