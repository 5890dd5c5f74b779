//! A region that calls what kernels cannot call.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &mut [u32]) {
    #[kernel(tblock(4), thread(4))]
    {
        #[loop_partition(over_thread)]
        for i in 0..x.len() {
            x[i] = helper(i);
        }
    }
}

fn helper(i: usize) -> u32 {
    i as u32
}

fn main() {}
