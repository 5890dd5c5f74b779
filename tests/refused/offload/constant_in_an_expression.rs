//! A directive about constant memory in a statement that holds no region.

use kiln::prelude::*;

#[kiln::offload]
fn f(w: &[u32], x: &mut [u32], n: usize) {
    if n > 3 {
        constant!(copyin w);
    }
    #[kernel(tblock(1), thread(32))]
    {
        x[0] = w[0];
    }
}

fn main() {}
