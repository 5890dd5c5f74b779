//! Slices of which a block is to compute what it reads, and that nothing in the region writes.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &[u32], y: &mut [u32], n: usize) {
    #[kernel(tblock(4), thread(4))]
    {
        #[loop_partition(over_tblock, over_thread)]
        #[shared(compute(x))]
        for i in 0..n {
            y[i] = x[i];
        }
    }
}

fn main() {}
