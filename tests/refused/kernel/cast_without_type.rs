//! Cast without type.
use kiln::prelude::*;

#[device_fn]
fn f<T: Float>(x: T) -> f32 {
    x.cast()
}

fn main() {}
