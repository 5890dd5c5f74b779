//! The kernels of the quickstart example, and the plain Rust they are checked against.
#![allow(
    dead_code,
    reason = "each program that includes this uses a part of it"
)]

use kiln::prelude::*;

/// Rows and columns of a tile of [`tiled_matmul`].
pub const TILE: u32 = 16;

/// `y = a * x + y`, one element a thread.
#[kernel]
pub fn saxpy<T: Float>(a: T, x: &[T], y: &mut [T]) {
    let i = global_id().x;
    if i < y.len() {
        y[i] = a * x[i] + y[i];
    }
}

/// `c = a * b` for square matrices, in 16 x 16 tiles of shared memory (CUDA guide, "Shared
/// Memory"). Any `n`: tiles reach over the edge and are padded with zeros.
#[kernel]
pub fn tiled_matmul(a: &[f32], b: &[f32], c: &mut [f32], n: u32) {
    const SIDE: usize = TILE as usize;
    let n = n as usize;
    let a_tile = shared!([[f32; SIDE]; SIDE]);
    let b_tile = shared!([[f32; SIDE]; SIDE]);
    let (tx, ty) = (thread_idx().x, thread_idx().y);
    let (row, column) = (global_id().y, global_id().x);
    let mut sum = 0.0;
    for first in (0..n).step_by(SIDE) {
        let (ka, kb) = (first + tx, first + ty);
        let place = &mut a_tile[ty][tx];
        if row < n && ka < n {
            *place = a[row * n + ka];
        } else {
            *place = 0.0;
        }
        let place = &mut b_tile[ty][tx];
        if kb < n && column < n {
            *place = b[kb * n + column];
        } else {
            *place = 0.0;
        }
        barrier();
        #[unroll]
        for i in 0..SIDE {
            sum += a_tile[ty][i] * b_tile[i][tx];
        }
        barrier();
    }
    if row < n && column < n {
        c[row * n + column] = sum;
    }
}

/// Adds the sum of `x` to `total[0]`: a grid-stride loop, a tree in shared memory, one atomic
/// addition a block ("Scalable Parallel Programming with CUDA", figure 10). Blocks of 256.
#[kernel]
pub fn block_sum<T: Num>(x: &[T], total: &mut [T]) {
    let tile = shared!([T; 256]);
    let thread = thread_idx().x;
    let mut sum = T::ZERO;
    for i in (global_id().x..x.len()).step_by(global_size().x) {
        sum += x[i];
    }
    tile[thread] = sum;
    barrier();
    for half in [128, 64, 32, 16, 8, 4, 2, 1] {
        if thread < half {
            tile[thread] += tile[thread + half];
        }
        barrier();
    }
    if thread == 0 {
        atomic_add(&mut total[0], tile[0]);
    }
}

/// `n` numbers that go up by `step` and start again every 1000.
pub fn ramp(n: usize, step: f32) -> Vec<f32> {
    (0..n).map(|i| (i % 1000) as f32 * step).collect()
}

/// One row of a matrix product in `f64`.
pub fn matmul_row(a: &[f32], b: &[f32], n: usize, row: usize) -> Vec<f64> {
    let mut out = vec![0.0; n];
    for (i, &x) in a[row * n..(row + 1) * n].iter().enumerate() {
        for (o, &y) in out.iter_mut().zip(&b[i * n..(i + 1) * n]) {
            *o += f64::from(x) * f64::from(y);
        }
    }
    out
}
