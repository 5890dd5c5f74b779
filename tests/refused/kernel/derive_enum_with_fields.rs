//! Derive enum with fields.
use kiln::prelude::*;

#[derive(KernelType, Copy, Clone)]
#[repr(u32)]
enum E {
    A,
    B(f32),
}

fn main() {}
