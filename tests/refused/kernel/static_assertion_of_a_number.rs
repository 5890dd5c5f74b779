//! A static assertion of what is no condition.
use kiln::prelude::*;

#[kernel]
fn k<const N: usize>(x: &mut [f32]) {
    const { assert!(N % 32, "`N` is a multiple of 32") };
    x[0] = 1.0;
}

fn main() {}
