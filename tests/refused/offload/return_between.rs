//! A function that ends before its end.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &mut [u32]) {
    if x.len() == 0 {
        return;
    }
    #[kernel(tblock(4), thread(4))]
    {
        x[0] = 1;
    }
}

fn main() {}
