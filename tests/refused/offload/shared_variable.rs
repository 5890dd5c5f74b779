//! A variable that is no array, in shared memory.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &mut [u32]) {
    #[kernel(tblock(1), thread(32))]
    {
        #[shared]
        let mut sum: u32 = 0;
        sum += x[0];
        x[0] = sum;
    }
}

fn main() {}
