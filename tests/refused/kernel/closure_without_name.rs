//! A closure that is called where it is written.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    y[0] = (|v: f32| v * 2.0)(x[0]);
}

fn main() {}
