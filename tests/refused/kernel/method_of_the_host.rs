//! A method, a function and a constant that are not for kernels.
use kiln::prelude::*;

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Complex {
    re: f32,
    im: f32,
}

impl Complex {
    fn norm(self) -> f32 {
        self.re + self.im
    }
    fn real(re: f32) -> Complex {
        Complex { re, im: 0.0 }
    }
}

#[kernel]
fn k(x: &mut [Complex]) {
    x[0] = Complex::real(1.0);
    x[1].re = x[0].norm();
}

fn main() {}
