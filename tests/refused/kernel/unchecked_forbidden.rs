//! A kernel without checks is unsafe code.
#![forbid(unsafe_code)]
use kiln::prelude::*;

#[kernel(unsafe(unchecked))]
fn unchecked(y: &mut [f32]) {
    y[0] = 1.0;
}

fn main() {}
