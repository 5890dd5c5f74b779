//! A slice that the host may not write, copied back.

use kiln::prelude::*;

#[kiln::offload]
fn f(y: &[u32], x: &mut [u32], n: usize) {
    global!(copyout y[0..4]);
    #[kernel(tblock(4), thread(4))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..n {
            x[i] = 1;
        }
    }
}

fn main() {}
