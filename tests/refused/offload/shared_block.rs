//! A block that is no loop.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &[u32], y: &mut [u32], n: usize) {
    #[kernel(tblock(4), thread(4))]
    {
        #[shared(copyin(x))]
        {
            y[n] = x[0];
        }
    }
}

fn main() {}
