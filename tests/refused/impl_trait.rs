//! Impl trait.
use kiln::prelude::*;

#[device_fn]
fn f(g: impl Fn(f32) -> f32) -> f32 {
    1.0
}

fn main() {}
