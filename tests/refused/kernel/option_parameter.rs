//! An option as a parameter of a kernel.
use kiln::prelude::*;

#[kernel]
fn k(x: Option<&[f32]>, limit: Option<f32>, y: &mut [f32]) {
    y[0] = limit.unwrap_or(1.0);
}

fn main() {}
