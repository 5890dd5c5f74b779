//! A scalar in constant memory.

use kiln::prelude::*;

#[kiln::offload]
fn f(w: u32, x: &mut [u32]) {
    constant!(copyin w);
    #[kernel(tblock(1), thread(32))]
    {
        x[0] = w;
    }
}

fn main() {}
