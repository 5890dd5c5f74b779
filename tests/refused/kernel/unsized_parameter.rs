//! Unsized parameter.
use kiln::prelude::*;

#[device_fn]
fn f(x: [f32]) -> f32 {
    1.0
}

fn main() {}
