//! A slice that cannot be written.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &[u32]) {
    #[kernel(tblock(4), thread(4))]
    {
        #[loop_partition(over_thread)]
        for i in 0..x.len() {
            x[i] = 1;
        }
    }
}

fn main() {}
