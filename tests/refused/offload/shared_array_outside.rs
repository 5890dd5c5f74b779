//! An array of a block in no region.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &mut [u32]) {
    #[shared]
    let mut tile: [u32; 4] = [0; 4];
    tile[0] = 1;
    #[kernel(tblock(1), thread(32))]
    {
        x[0] = 3;
    }
}

fn main() {}
