//! A method that takes a closure.
use kiln::prelude::*;

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Complex {
    re: f32,
    im: f32,
}

#[device_fn]
impl Complex {
    fn map<F: Fn(f32) -> f32>(self, f: F) -> Complex {
        Complex { re: f(self.re), im: f(self.im) }
    }
}

#[kernel]
fn k(x: &mut [Complex]) {
    x[0] = x[0].map(|v| v + 1.0);
}

fn main() {}
