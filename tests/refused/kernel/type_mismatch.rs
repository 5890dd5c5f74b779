//! Type mismatch.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    let a: f32 = 1u32;
    y[0] = a;
}

fn main() {}
