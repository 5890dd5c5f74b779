//! A transformation of a `while`.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &mut [u32]) {
    #[kernel(tblock(4), thread(4))]
    {
        let mut i = 0;
        #[loop_transform(unroll(4))]
        while i < x.len() {
            i += 1;
            x[i] = 1;
        }
    }
}

fn main() {}
