//! A const argument of a method.
use kiln::prelude::*;

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Wave(f32);

#[device_fn]
impl Wave {
    fn times<const N: u32>(self) -> f32 {
        self.0 * N as f32
    }
}

#[kernel]
fn k(y: &mut [f32]) {
    y[0] = Wave(1.5).times::<4>();
}

fn main() {}
