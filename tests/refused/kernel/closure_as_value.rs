//! A closure that is stored.
use kiln::prelude::*;

#[device_fn]
fn apply<F: Fn(f32) -> f32>(x: f32, f: F) -> f32 {
    f(x)
}

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    let double = |v: f32| v * 2.0;
    let same = double;
    y[0] = apply(x[0], same);
}

fn main() {}
