//! A reduction of a variable, and not of elements.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &[u32], y: &mut [u32]) {
    #[kernel(tblock(1), thread(32))]
    {
        let mut sum = 0;
        #[loop_partition(over_thread, reduction(sum))]
        for i in 0..x.len() {
            sum += x[i];
        }
        y[0] = sum;
    }
}

fn main() {}
