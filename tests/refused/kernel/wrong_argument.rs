//! Wrong argument.
use kiln::prelude::*;

#[device_fn]
fn f(a: f32) -> f32 {
    a
}

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    y[0] = f(1u8);
}

fn main() {}
