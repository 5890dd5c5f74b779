//! A comparison of a struct that is written by hand.
use kiln::prelude::*;

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Tagged {
    tag: u32,
    value: f32,
}

#[device_fn]
impl PartialEq for Tagged {
    fn eq(&self, other: &Self) -> bool {
        self.tag == other.tag
    }
}

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Plain(f32);

#[kernel]
fn k(x: &mut [u32], a: Plain, b: Plain) {
    x[0] = u32::from(a == b);
}

fn main() {}
