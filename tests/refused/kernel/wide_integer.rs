//! Wide integer.
use kiln::prelude::*;

#[device_fn]
fn f(n: u128) -> u32 {
    n as u32
}

fn main() {}
