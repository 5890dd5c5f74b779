//! Bound not met.
use kiln::prelude::*;

#[device_fn]
fn f<T: Float>(a: T) -> T {
    a
}

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    y[0] = f(1u8) as f32;
}

fn main() {}
