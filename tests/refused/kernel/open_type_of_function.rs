//! A function of a generic type whose parameter nothing tells.
use kiln::prelude::*;

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Pair<T> {
    a: T,
    b: T,
}

#[device_fn]
impl<T: Num> Pair<T> {
    fn size() -> u32 {
        2
    }
}

#[kernel]
fn k(x: &mut [u32]) {
    x[0] = Pair::size();
    x[1] = Pair::<f32>::size();
}

fn main() {}
