//! A slice that no region writes, and that is to be copied out of shared memory.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &[u32], y: &mut [u32]) {
    #[kernel(tblock(1), thread(32))]
    {
        #[loop_partition(over_thread)]
        #[shared(copyout(x))]
        for i in 0..x.len() {
            y[i] = x[i];
        }
    }
}

fn main() {}
