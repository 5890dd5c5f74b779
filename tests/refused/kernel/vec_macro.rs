//! Vec macro.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    let v = vec![0.0; 4];
}

fn main() {}
