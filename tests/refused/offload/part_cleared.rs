//! A part of a slice that is to be zero.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &mut [u32], n: usize) {
    global!(clear x[0..4]);
    #[kernel(tblock(4), thread(4))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..n {
            x[i] = 1;
        }
    }
}

fn main() {}
