//! A loop over warps and lanes.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &mut [u32]) {
    #[kernel(tblock(8), thread(64))]
    {
        #[loop_partition(over_warp, over_lane)]
        for i in 0..x.len() {
            x[i] = 1;
        }
    }
}

fn main() {}
