//! A kernel that takes a closure.
use kiln::prelude::*;

#[kernel]
fn k<F: Fn(f32) -> f32>(x: &[f32], y: &mut [f32], f: F) {
    y[0] = f(x[0]);
}

fn main() {}
