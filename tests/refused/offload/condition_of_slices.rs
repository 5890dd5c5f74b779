//! A condition of a loop around a region that uses a slice.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &mut [u32]) {
    while x[0] < 10 {
        #[kernel(tblock(4), thread(4))]
        {
            x[0] += 1;
        }
    }
}

fn main() {}
