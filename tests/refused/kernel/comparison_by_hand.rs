//! Comparisons that are written by hand, of which kernels have no use, or not this one.
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
    fn ne(&self, other: &Self) -> bool {
        self.value != other.value
    }
}

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Number(u32);

#[device_fn]
impl PartialEq<u32> for Number {
    fn eq(&self, other: &u32) -> bool {
        self.0 == *other
    }
}

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Near<T> {
    at: T,
}

#[device_fn]
impl<T: Float> PartialEq for Near<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.at - other.at).abs() < T::ONE
    }
}

#[derive(Copy, Clone, KernelType)]
#[repr(u32)]
enum Kind {
    Any,
    One,
}

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        matches!((self, other), (Kind::Any, _) | (_, Kind::Any))
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
