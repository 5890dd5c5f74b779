//! A counter of the host that a region uses.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &mut [u32]) {
    for step in 0..3u32 {
        #[kernel(tblock(4), thread(4))]
        {
            #[loop_partition(over_thread)]
            for i in 0..x.len() {
                x[i] = step;
            }
        }
    }
}

fn main() {}
