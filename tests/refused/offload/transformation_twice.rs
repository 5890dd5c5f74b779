//! A clause that is there twice.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &mut [u32]) {
    #[kernel(tblock(4), thread(4))]
    {
        #[loop_transform(unroll, unroll(4))]
        for i in 0..x.len() {
            x[i] = 1;
        }
    }
}

fn main() {}
