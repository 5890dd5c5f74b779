//! A function that takes a closure and a const parameter.
use kiln::prelude::*;

#[device_fn]
fn total<const N: usize, F: Fn(f32) -> f32>(x: [f32; N], f: F) -> f32 {
    f(x[0])
}

fn main() {}
