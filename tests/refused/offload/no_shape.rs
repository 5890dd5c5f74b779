//! A shape without extents.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &mut [u32], n: usize) {
    shape!(x);
    #[kernel(tblock(4), thread(4))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..n {
            x[i] = 1;
        }
    }
}

fn main() {}
