//! A loop that one thread executes.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &[u32], y: &mut [u32], n: usize) {
    #[kernel(tblock(4), thread(4))]
    {
        #[singular]
        {
            #[shared(copyin(x))]
            for i in 0..n {
                y[i] = x[i];
            }
        }
    }
}

fn main() {}
