//! Assign twice.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    let a = x[0];
    a = 2.0;
    y[0] = a;
}

fn main() {}
