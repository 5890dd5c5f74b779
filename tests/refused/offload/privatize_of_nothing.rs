//! No slice of which iterations are to have elements of their own.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &mut [u32]) {
    #[kernel(tblock(8), thread(64))]
    {
        #[loop_partition(over_tblock, over_thread)]
        #[loop_transform(privatize())]
        for i in 0..x.len() {
            x[i] = 1;
        }
    }
}

fn main() {}
