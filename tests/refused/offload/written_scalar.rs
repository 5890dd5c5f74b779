//! A scalar of the function that a region writes.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &[u32]) -> u32 {
    let mut sum: u32 = 0;
    #[kernel(tblock(4), thread(4))]
    {
        #[loop_partition(over_thread)]
        for i in 0..x.len() {
            sum += x[i];
        }
    }
    sum
}

fn main() {}
