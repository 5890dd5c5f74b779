//! Derive host field.
use kiln::prelude::*;

#[derive(Copy, Clone)]
struct Host;

#[derive(KernelType, Copy, Clone)]
#[repr(C)]
struct S {
    a: Host,
}

fn main() {}
