//! Variables with the names of kernels.
use kiln::prelude::*;

#[kernel]
fn scale(x: &mut [f32], scale: f32) {
    x[0] *= scale;
}

#[kernel]
fn other(x: &mut [f32]) {
    let other = x[0];
    x[1] = other;
}

#[kernel]
fn third(x: &mut [f32]) {
    let other = x[0];
    x[1] = other;
}

fn main() {}
