//! Derive reference.
use kiln::prelude::*;

#[derive(KernelType, Copy, Clone)]
#[repr(C)]
struct S<'a> {
    a: &'a f32,
}

fn main() {}
