//! A function that takes a closure and a number that is an argument of a type.
use kiln::prelude::*;

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Row<const N: usize> {
    items: [f32; N],
}

#[device_fn]
fn total<const N: usize, F: Fn(f32) -> f32>(x: Row<N>, f: F) -> f32 {
    f(x.items[0])
}

fn main() {}
