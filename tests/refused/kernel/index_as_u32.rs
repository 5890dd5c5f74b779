//! An index of 32 bits, as in CUDA C++.
use kiln::prelude::*;

#[kernel]
fn scale(x: &mut [f32], n: u32) {
    let i: u32 = thread_idx().x + block_idx().x * block_dim().x;
    if i < n {
        x[i] *= 2.0;
    }
}

fn main() {}
