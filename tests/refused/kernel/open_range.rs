//! Open range.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    for i in 0.. {
        y[i] = 1.0;
    }
}

fn main() {}
