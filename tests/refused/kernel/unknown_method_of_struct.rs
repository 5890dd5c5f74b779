//! Methods and functions that there are not.
use kiln::prelude::*;

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Complex {
    re: f32,
    im: f32,
}

#[device_fn]
impl Complex {
    fn norm(self) -> f32 {
        self.re + self.im
    }
}

#[kernel]
fn k(x: &mut [Complex]) {
    x[0].re = x[1].nrom();
    x[1] = Complex::real(2.0);
}

fn main() {}
