//! Index type.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    let i = 1u32;
    y[i] = 1.0;
}

fn main() {}
