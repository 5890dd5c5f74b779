//! Reference result.
use kiln::prelude::*;

#[device_fn]
fn f(x: &[f32]) -> &f32 {
    &x[0]
}

fn main() {}
