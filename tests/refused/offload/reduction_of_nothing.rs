//! A reduction that does not say of which slices.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &[u32], y: &mut [u32]) {
    #[kernel(tblock(1), thread(32))]
    {
        #[loop_partition(over_thread, reduction)]
        for i in 0..x.len() {
            y[0] += x[i];
        }
    }
}

fn main() {}
