//! Vec type.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    let v: Vec<f32> = Vec::new();
}

fn main() {}
