//! A partition of a loop that does not count.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &mut [u32]) {
    #[kernel(tblock(4), thread(4))]
    {
        let mut i = 0;
        #[loop_partition(over_thread)]
        while i < x.len() {
            x[i] = 1;
            i += 1;
        }
    }
}

fn main() {}
