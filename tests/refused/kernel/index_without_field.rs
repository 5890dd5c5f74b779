//! `global_id()` without `.x`.
use kiln::prelude::*;

#[kernel]
fn scale(x: &mut [f32]) {
    let i = global_id();
    x[i] *= 2.0;
    if i < x.len() {
        x[0] = 1.0;
    }
    let next = i + 1;
    let block = block_idx() * 256;
    x[next + block] = 0.0;
}

fn main() {}
