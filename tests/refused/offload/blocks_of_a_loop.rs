//! A number of blocks at a loop.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &mut [u32]) {
    #[kernel(tblock(8), thread(2))]
    {
        #[loop_partition(over_tblock(8), over_thread)]
        for i in 0..x.len() {
            x[i] = 1;
        }
    }
}

fn main() {}
