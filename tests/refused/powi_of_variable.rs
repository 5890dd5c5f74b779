//! Powi of variable.
use kiln::prelude::*;

#[device_fn]
fn f(x: f32, n: i32) -> f32 {
    x.powi(n + 1)
}

fn main() {}
