//! Derive aligned too far.
use kiln::prelude::*;

#[derive(KernelType, Copy, Clone)]
#[repr(C, align(32))]
struct S {
    a: [f32; 8],
}

fn main() {}
