//! An inner variable with the name of a slice.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &mut [u32], y: &mut [u32]) {
    for _ in 0..2 {
        let x = &mut *y;
        #[kernel(tblock(4), thread(4))]
        {
            #[loop_partition(over_thread)]
            for i in 0..x.len() {
                x[i] = 1;
            }
        }
    }
}

fn main() {}
