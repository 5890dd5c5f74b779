//! What is said of functions for hooks to read.
use kiln::prelude::*;

#[kernel(attribute(fast_math, fast_math = false))]
fn twice(y: &mut [f32]) {
    y[0] = 1.0;
}

#[kernel(attribute(unroll = 1.5))]
fn no_value(y: &mut [f32]) {
    y[0] = 1.0;
}

#[device_fn(launch_bounds(256))]
fn bounds_of_a_kernel(x: f32) -> f32 {
    x
}

#[device_fn(attribute(fast_math))]
fn taken_apart<F: Fn(f32) -> f32>(f: F) -> f32 {
    f(1.0)
}

fn main() {}
