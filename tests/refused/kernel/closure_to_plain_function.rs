//! A device function that takes no closure.
use kiln::prelude::*;

#[device_fn]
fn double(x: f32) -> f32 {
    x * 2.0
}

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    y[0] = double(|v: f32| v);
}

fn main() {}
