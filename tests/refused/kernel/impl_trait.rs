//! Impl trait as a result, and inside of what kernels hold.
use kiln::prelude::*;

#[device_fn]
fn f(x: f32) -> impl Float {
    x
}

fn main() {}
