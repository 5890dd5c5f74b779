//! A grid without a dimension.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &mut [u32]) {
    #[kernel(tblock(), thread(4))]
    {
        x[0] = 1;
    }
}

fn main() {}
