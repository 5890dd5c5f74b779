//! Attributes that mean nothing on a kernel or a device function.
use kiln::prelude::*;

#[kernel]
#[inline(always)]
fn inlined(y: &mut [f32]) {
    y[0] = 1.0;
}

#[kernel]
#[must_use]
/// A doc comment and these stay.
#[allow(dead_code, reason = "it is refused")]
#[rustfmt::skip]
fn used(y: &mut [f32]) {
    y[0] = 1.0;
}

#[device_fn]
#[track_caller]
fn tracked(x: f32) -> f32 {
    x
}

#[device_fn]
#[must_use]
#[inline]
fn hinted(x: f32) -> f32 {
    x
}

#[device_fn]
#[cfg_attr(all(), inline(never))]
fn conditional(x: f32) -> f32 {
    x
}

#[device_fn]
#[inline(never)]
fn with_closure<F: Fn(f32) -> f32>(x: f32, f: F) -> f32 {
    f(x)
}

#[derive(KernelType, Copy, Clone)]
#[repr(C)]
struct Point {
    x: f32,
}

#[device_fn]
impl Point {
    #[inline(always)]
    fn twice(self) -> f32 {
        self.x * 2.0
    }

    #[cold]
    fn half(self) -> f32 {
        self.x * 0.5
    }
}

fn main() {}
