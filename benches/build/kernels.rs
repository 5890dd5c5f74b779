//! The kernels of `cargo xtask bench-build`, from saxpy to a tiled matrix product. They stand in a
//! crate twenty times, each time with another `K`; the same functions without `#[kernel]` are what the
//! cost of compiling them is compared with.

use kiln::prelude::*;

const K: u32 = 0;

#[kernel]
pub fn saxpy(a: f32, x: &[f32], y: &mut [f32]) {
    let i = global_id().x;
    if i < y.len() {
        y[i] = a * x[i] + y[i] + K as f32;
    }
}

#[kernel]
pub fn stencil(input: &[f32], output: &mut [f32], columns: usize, rows: usize) {
    let (column, row) = (global_id().x, global_id().y);
    if column == 0 || row == 0 || column + 1 >= columns || row + 1 >= rows {
        return;
    }
    let at = row * columns + column;
    let sides = input[at - 1] + input[at + 1];
    let ends = input[at - columns] + input[at + columns];
    let center = input[at];
    output[at] = center + 0.25 * (sides + ends - 4.0 * center) * K as f32;
}

#[kernel]
pub fn histogram(keys: &[u32], counts: &mut [u32]) {
    let tile = shared!([u32; 256]);
    let thread = thread_idx().x;
    tile[thread] = 0;
    barrier();
    for i in (global_id().x..keys.len()).step_by(global_size().x) {
        let key = (keys[i] >> K) % 256;
        atomic_add(&mut tile[key as usize], 1);
    }
    barrier();
    if thread < counts.len() {
        atomic_add(&mut counts[thread], tile[thread]);
    }
}

#[kernel]
pub fn block_sum(x: &[f32], total: &mut [f32]) {
    let tile = shared!([f32; 256]);
    let thread = thread_idx().x;
    let mut sum = K as f32;
    for i in (global_id().x..x.len()).step_by(global_size().x) {
        sum += x[i];
    }
    tile[thread] = sum;
    barrier();
    let mut half = block_dim().x / 2;
    while half > 0 {
        if thread < half {
            tile[thread] += tile[thread + half];
        }
        barrier();
        half /= 2;
    }
    if thread == 0 {
        atomic_add(&mut total[0], tile[0]);
    }
}

#[kernel]
pub fn tiled_matmul(a: &[f32], b: &[f32], c: &mut [f32], n: usize) {
    let a_tile = shared!([[f32; 16]; 16]);
    let b_tile = shared!([[f32; 16]; 16]);
    let (tx, ty) = (thread_idx().x, thread_idx().y);
    let (row, column) = (global_id().y, global_id().x);
    let mut sum = K as f32;
    for first in (0..n).step_by(16) {
        let (ka, kb) = (first + tx, first + ty);
        if row < n && ka < n {
            a_tile[ty][tx] = a[row * n + ka];
        } else {
            a_tile[ty][tx] = 0.0;
        }
        if kb < n && column < n {
            b_tile[ty][tx] = b[kb * n + column];
        } else {
            b_tile[ty][tx] = 0.0;
        }
        barrier();
        for i in 0..16 {
            sum += a_tile[ty][i] * b_tile[i][tx];
        }
        barrier();
    }
    if row < n && column < n {
        c[row * n + column] = sum;
    }
}
