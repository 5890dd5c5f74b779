//! A directive about constant memory in a region.

use kiln::prelude::*;

#[kiln::offload]
fn f(w: &[u32], x: &mut [u32]) {
    #[kernel(tblock(1), thread(32))]
    {
        constant!(copyin w);
        x[0] = w[0];
    }
}

fn main() {}
