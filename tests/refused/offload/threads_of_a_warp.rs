//! A number of lanes at a loop.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &mut [u32]) {
    #[kernel(tblock(8), thread(64))]
    {
        #[loop_partition(over_tblock, over_lane(32))]
        for i in 0..x.len() {
            x[i] = 1;
        }
    }
}

fn main() {}
