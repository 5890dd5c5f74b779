//! Inline assembly.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    core::arch::asm!("nop");
}

fn main() {}
