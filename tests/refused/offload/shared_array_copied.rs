//! An array of a block that is to be copied from somewhere.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &mut [u32]) {
    #[kernel(tblock(1), thread(32))]
    {
        #[shared(copyin(x))]
        let mut tile: [u32; 4] = [0; 4];
        tile[0] = 1;
        x[0] = tile[0];
    }
}

fn main() {}
