//! Aliased slices.
use kiln::prelude::*;

#[device_fn]
fn two(a: &mut [f32], b: &mut [f32]) {
    a[0] = b[0];
}

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    two(y, y);
}

fn main() {}
