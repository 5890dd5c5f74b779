//! Shared without type.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    let tile = shared!(32 + 1);
}

fn main() {}
