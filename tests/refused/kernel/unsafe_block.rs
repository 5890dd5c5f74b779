//! Unsafe block.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    y[0] = unsafe { *x.get_unchecked(0) };
}

fn main() {}
