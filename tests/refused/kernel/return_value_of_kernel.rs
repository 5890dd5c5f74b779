//! Return value of kernel.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    return x[0];
}

fn main() {}
