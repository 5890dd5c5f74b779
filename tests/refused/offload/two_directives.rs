//! Two directives on one loop.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &mut [u32]) {
    #[kernel(tblock(4), thread(4))]
    {
        #[loop_partition(over_thread)]
        #[loop_partition(over_tblock)]
        for i in 0..x.len() {
            x[i] = 1;
        }
    }
}

fn main() {}
