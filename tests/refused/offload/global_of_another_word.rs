//! What is copied back by itself.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &mut [u32]) {
    global!(copyout x);
    #[kernel(tblock(1), thread(32))]
    {
        x[0] = 1;
    }
}

fn main() {}
