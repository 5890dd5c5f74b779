//! Mathematical functions are those of floats.
use kiln::prelude::*;

#[kernel]
fn k(x: &[i32], y: &mut [i32]) {
    y[0] = x[0].sin();
}

fn main() {}
