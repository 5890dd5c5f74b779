//! A closure behind a trait object.
use kiln::prelude::*;

#[device_fn]
fn apply(x: f32, f: &dyn Fn(f32) -> f32) -> f32 {
    f(x)
}

fn main() {}
