//! Format.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    let s = format!("{}", 1);
}

fn main() {}
