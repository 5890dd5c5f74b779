//! Running values that are elements.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &mut [u32]) {
    #[kernel(tblock(1), thread(64))]
    {
        #[loop_partition(over_thread, scan(x))]
        for i in 1..x.len() {
            x[i] += x[i - 1];
        }
    }
}

fn main() {}
