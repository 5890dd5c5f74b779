//! Wrong arguments and results of methods.
use kiln::prelude::*;

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Complex {
    re: f32,
    im: f32,
}

#[device_fn]
impl Complex {
    fn new(re: f32, im: f32) -> Self {
        Self { re, im }
    }
    fn times(self, by: f32) -> Self {
        Self::new(self.re * by, self.im * by)
    }
}

#[kernel]
fn k(x: &mut [Complex]) {
    let n: u32 = x[0].times(2.0);
    x[0] = Complex::new(1.0);
    x[0] = Complex::new(n, 1.0);
    x[0] = x[1].times(1u8);
}

fn main() {}
