//! Assert.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    assert!(x.len() == y.len());
}

fn main() {}
