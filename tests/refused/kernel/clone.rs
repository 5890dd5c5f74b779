//! Clone.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    y[0] = x[0].clone();
}

fn main() {}
