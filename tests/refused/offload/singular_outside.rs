//! `singular` outside of regions.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &mut [u32]) {
    #[singular]
    {
        x[0] = 1;
    }
}

fn main() {}
