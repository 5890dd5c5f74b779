//! A function is passed on as a closure.
use kiln::prelude::*;

#[device_fn]
fn apply<F: Fn(f32) -> f32>(x: f32, f: F) -> f32 {
    f(x)
}

#[device_fn]
fn double(x: f32) -> f32 {
    x * 2.0
}

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    y[0] = apply(x[0], double);
}

fn main() {}
