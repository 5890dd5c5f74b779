//! A clause of `loop_transform` that there is not.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &mut [u32]) {
    #[kernel(tblock(4), thread(4))]
    {
        #[loop_transform(skew(4))]
        for i in 0..x.len() {
            x[i] = 1;
        }
    }
}

fn main() {}
