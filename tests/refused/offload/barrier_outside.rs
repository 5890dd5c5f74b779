//! A barrier outside of regions.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &mut [u32]) {
    x[0] = 1;
    barrier!();
}

fn main() {}
