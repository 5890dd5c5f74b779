//! Recursion.
use kiln::prelude::*;

#[device_fn]
fn f(n: u32) -> u32 {
    if n == 0 { 1 } else { n * f(n - 1) }
}

fn main() {}
