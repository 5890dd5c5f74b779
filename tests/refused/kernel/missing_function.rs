//! A function that there is not.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    y[0] = missing(x[0]);
}

fn main() {}
