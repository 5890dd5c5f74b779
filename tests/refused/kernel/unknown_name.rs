//! Unknown name.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    y[0] = missing;
}

fn main() {}
