//! A region that does not say its grid.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &mut [u32]) {
    #[kernel(tblock(4))]
    {
        x[0] = 1;
    }
}

fn main() {}
