//! A variable whose declaration does not say its type.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &mut [u32]) {
    let first = x[0];
    #[kernel(tblock(4), thread(4))]
    {
        #[loop_partition(over_thread)]
        for i in 0..x.len() {
            x[i] = first;
        }
    }
}

fn main() {}
