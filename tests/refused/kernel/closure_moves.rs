//! A closure that takes a variable with it that may change.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    let mut by = x[1];
    let scaled = move |v: f32| v * by;
    by += 1.0;
    y[0] = scaled(x[0]) + by;
}

fn main() {}
