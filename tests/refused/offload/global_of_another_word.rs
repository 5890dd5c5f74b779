//! A word that no clause begins with.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &mut [u32]) {
    global!(update x);
    #[kernel(tblock(1), thread(32))]
    {
        x[0] = 1;
    }
}

fn main() {}
