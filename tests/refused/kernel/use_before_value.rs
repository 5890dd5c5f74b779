//! Use before value.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    let a: f32;
    y[0] = a;
}

fn main() {}
