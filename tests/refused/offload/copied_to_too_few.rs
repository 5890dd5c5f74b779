//! More slices than places for them.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &mut [u32], n: usize) {
    global!(copyout x[0..2], x[4..6] to x[1..3]);
    #[kernel(tblock(4), thread(4))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..n {
            x[i] = 1;
        }
    }
}

fn main() {}
