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

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Half(f32);

#[device_fn(attribute(fast_math))]
impl Half {
    fn value(self) -> f32 {
        self.0
    }
}

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Third(f32);

#[device_fn]
impl Third {
    #[device_fn(attribute(one))]
    #[device_fn(attribute(two))]
    fn twice(self) -> f32 {
        self.0
    }

    #[device_fn(launch_bounds(2))]
    fn bounds_of_a_kernel(self) -> f32 {
        self.0
    }
}

fn main() {}
