//! Trait object.
use kiln::prelude::*;

#[kernel]
fn k(x: &dyn std::fmt::Debug, y: &mut [f32]) {
    y[0] = 1.0;
}

fn main() {}
