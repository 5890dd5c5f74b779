//! A method that changes what cannot be changed.
use kiln::prelude::*;

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Complex {
    re: f32,
    im: f32,
}

#[device_fn]
impl Complex {
    fn scale(&mut self, by: f32) {
        self.re *= by;
    }
    fn double(&self) {
        self.re *= 2.0;
    }
}

#[kernel]
fn k(x: &[Complex]) {
    let z = x[0];
    z.scale(2.0);
    x[1].scale(2.0);
}

fn main() {}
