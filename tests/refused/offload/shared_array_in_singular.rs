//! An array of a block that one thread declares.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &mut [u32]) {
    #[kernel(tblock(1), thread(32))]
    {
        #[singular]
        {
            #[shared]
            let mut tile: [u32; 4] = [0; 4];
            tile[0] = 1;
            x[0] = tile[0];
        }
    }
}

fn main() {}
