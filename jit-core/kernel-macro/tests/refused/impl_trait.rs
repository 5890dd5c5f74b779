//! Impl trait.
use kiln::prelude::*;

#[device_fn]
fn f(x: impl Float) -> f32 {
    x.cast::<f32>()
}

fn main() {}
