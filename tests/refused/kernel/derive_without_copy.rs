//! Derive without copy.
use kiln::prelude::*;

#[derive(KernelType)]
#[repr(C)]
struct S {
    a: f32,
}

fn main() {}
