//! A directive about the device in a region.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &mut [u32]) {
    #[kernel(tblock(1), thread(32))]
    {
        global!(alloc x);
        x[0] = 1;
    }
}

fn main() {}
