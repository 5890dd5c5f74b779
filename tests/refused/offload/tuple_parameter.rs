//! A parameter that is no name.

use kiln::prelude::*;

#[kiln::offload]
fn f((x, y): (u32, u32), out: &mut [u32]) {
    #[kernel(tblock(4), thread(4))]
    {
        out[0] = x + y;
    }
}

fn main() {}
