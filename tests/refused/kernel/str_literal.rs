//! Str literal.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    let name = "saxpy";
}

fn main() {}
