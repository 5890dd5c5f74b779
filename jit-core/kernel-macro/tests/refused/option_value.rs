//! Option value.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    let v = Some(1.0);
}

fn main() {}
