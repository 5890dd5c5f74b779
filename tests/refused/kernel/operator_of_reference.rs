//! An operator of a reference.
use kiln::prelude::*;

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Complex {
    re: f32,
    im: f32,
}

#[device_fn]
impl std::ops::Neg for &Complex {
    type Output = Complex;
    fn neg(self) -> Complex {
        Complex { re: -self.re, im: -self.im }
    }
}

fn main() {}
