//! A clause that kernel regions do not have.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &mut [u32]) {
    #[kernel(tblock(4), thread(4), shared(8))]
    {
        x[0] = 1;
    }
}

fn main() {}
