//! Unwrap.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    y[0] = *x.get(0).unwrap();
}

fn main() {}
