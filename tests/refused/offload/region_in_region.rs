//! A region within a region.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &mut [u32]) {
    #[kernel(tblock(4), thread(4))]
    {
        #[kernel(tblock(4), thread(4))]
        {
            x[0] = 1;
        }
    }
}

fn main() {}
