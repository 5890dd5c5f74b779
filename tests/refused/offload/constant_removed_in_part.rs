//! A part of a constant that is removed.

use kiln::prelude::*;

#[kiln::offload]
fn f(w: &[u32], x: &mut [u32]) {
    constant!(copyin w);
    #[kernel(tblock(1), thread(32))]
    {
        x[0] = w[0];
    }
    constant!(remove w[0..2]);
}

fn main() {}
