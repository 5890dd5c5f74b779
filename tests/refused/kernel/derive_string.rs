//! Derive string.
use kiln::prelude::*;

#[derive(KernelType)]
#[repr(C)]
struct S {
    a: String,
}

fn main() {}
