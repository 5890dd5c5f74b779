//! Derive enum without repr.
use kiln::prelude::*;

#[derive(KernelType, Copy, Clone)]
enum E {
    A,
    B,
}

fn main() {}
