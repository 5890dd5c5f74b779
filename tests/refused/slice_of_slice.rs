//! Slice of slice.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    let head = &x[..4];
    y[0] = head[0];
}

fn main() {}
