//! Ref pattern.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    let ref a = x[0];
    y[0] = *a;
}

fn main() {}
