//! A constant that is copied back, which no region writes.

use kiln::prelude::*;

#[kiln::offload]
fn f(w: &mut [u32], x: &mut [u32]) {
    constant!(copyin w);
    #[kernel(tblock(1), thread(32))]
    {
        x[0] = w[0];
    }
    constant!(copyout w);
}

fn main() {}
