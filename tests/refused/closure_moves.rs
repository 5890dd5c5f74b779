//! A closure that takes its variables with it.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    let by = x[1];
    let scaled = move |v: f32| v * by;
    y[0] = scaled(x[0]);
}

fn main() {}
