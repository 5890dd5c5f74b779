//! A method with a name of the library that changes something.
use kiln::prelude::*;

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Complex {
    re: f32,
    im: f32,
}

#[device_fn]
impl Complex {
    fn max(&mut self, other: f32) {
        self.re = other;
    }
}

fn main() {}
