//! Launch bounds.
use kiln::prelude::*;

#[kernel(threads = 256)]
fn k(y: &mut [f32]) {
    y[0] = 1.0;
}

fn main() {}
