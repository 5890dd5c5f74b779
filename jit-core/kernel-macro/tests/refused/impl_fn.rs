//! A closure parameter without a name for its type.
use kiln::prelude::*;

#[device_fn]
fn apply(x: f32, f: impl Fn(f32) -> f32) -> f32 {
    f(x)
}

fn main() {}
