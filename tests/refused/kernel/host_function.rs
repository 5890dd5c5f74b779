//! Host function.
use kiln::prelude::*;

fn helper(v: f32) -> f32 {
    v
}

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    y[0] = helper(x[0]);
}

fn main() {}
