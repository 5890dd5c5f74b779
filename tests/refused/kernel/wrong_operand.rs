//! Wrong operand.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    let n = 3u32;
    y[0] = x[0] * n;
}

fn main() {}
