//! Derive packed.
use kiln::prelude::*;

#[derive(KernelType, Copy, Clone)]
#[repr(C, packed)]
struct S {
    a: u8,
    b: u32,
}

fn main() {}
