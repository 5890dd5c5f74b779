//! Shares in another spelling.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &mut [u32]) {
    #[kernel(tblock(4), thread(4))]
    {
        #[loop_partition(over_tblock(cyclic))]
        for i in 0..x.len() {
            x[i] = 1;
        }
    }
}

fn main() {}
