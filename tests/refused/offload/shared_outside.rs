//! A loop that stages a slice in no region.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &[u32], y: &mut [u32]) {
    #[shared(copyin(x))]
    for i in 0..3 {
        y[i] = x[i];
    }
    #[kernel(tblock(1), thread(32))]
    {
        y[0] = 3;
    }
}

fn main() {}
