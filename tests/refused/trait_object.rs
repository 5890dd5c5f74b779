//! Trait object.
use kiln::prelude::*;

#[kernel]
fn k(f: &dyn Fn(f32) -> f32, y: &mut [f32]) {
    y[0] = 1.0;
}

fn main() {}
