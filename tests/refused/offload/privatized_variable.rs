//! A variable of the region of which iterations are to have their own.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &mut [u32]) {
    #[kernel(tblock(8), thread(64))]
    {
        let mut last = 0;
        #[loop_partition(over_tblock, over_thread)]
        #[loop_transform(privatize(last))]
        for i in 0..x.len() {
            last = x[i];
            x[i] = last + 1;
        }
    }
}

fn main() {}
