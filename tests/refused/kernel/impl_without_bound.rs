//! A parameter of an `impl` block without a bound.
use kiln::prelude::*;

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Pair<T> {
    a: T,
    b: T,
}

#[device_fn]
impl<T: Copy> Pair<T> {
    fn first(self) -> T {
        self.a
    }
    fn second(self) -> T {
        self.b
    }
}

#[kernel]
fn k(x: &mut [Pair<f32>]) {
    x[0].a = x[0].second();
}

fn main() {}
