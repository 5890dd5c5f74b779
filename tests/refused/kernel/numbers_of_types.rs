//! Const parameters that are arguments of types, and that no call can tell.
use kiln::prelude::*;

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Stack<const N: usize> {
    items: [u32; N],
}

#[device_fn]
impl<const N: usize> Stack<N> {
    fn new() -> Self {
        Stack { items: [0; N] }
    }

    fn longer<const M: usize>(&self) -> Stack<M> {
        Stack { items: [self.items[0]; M] }
    }
}

#[device_fn]
fn last<const N: usize>(x: u32) -> u32 {
    let stack = Stack::<N>::new();
    stack.items[0] + x
}

fn main() {}
