//! A function without a kernel region.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &mut [u32]) {
    x[0] = 1;
}

fn main() {}
