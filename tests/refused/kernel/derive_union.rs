//! Derive union.
use kiln::prelude::*;

#[derive(KernelType, Copy, Clone)]
#[repr(C)]
union U {
    a: f32,
    b: u32,
}

fn main() {}
