//! More iterations side by side than are written out.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &mut [u32]) {
    #[kernel(tblock(4), thread(4))]
    {
        #[loop_transform(unroll_and_jam(65))]
        for i in 0..x.len() {
            x[i] = 1;
        }
    }
}

fn main() {}
