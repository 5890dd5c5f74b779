//! A clause that is there twice.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &mut [u32]) {
    #[kernel(tblock(4), tblock(4), thread(4))]
    {
        x[0] = 1;
    }
}

fn main() {}
