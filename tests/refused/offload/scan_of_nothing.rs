//! Running values that nobody names.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &mut [u32]) {
    #[kernel(tblock(1), thread(64))]
    {
        let mut sum = 0;
        #[loop_partition(over_thread, scan)]
        for i in 0..x.len() {
            sum += x[i];
            x[i] = sum;
        }
    }
}

fn main() {}
