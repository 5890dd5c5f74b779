//! A region that leaves the function.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &mut [u32]) {
    #[kernel(tblock(4), thread(4))]
    {
        if x.len() == 0 {
            return;
        }
        x[0] = 1;
    }
}

fn main() {}
