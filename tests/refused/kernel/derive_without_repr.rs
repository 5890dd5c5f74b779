//! Derive without repr.
use kiln::prelude::*;

#[derive(KernelType, Copy, Clone)]
struct S {
    a: f32,
}

fn main() {}
