//! A region in an arm of a `match`.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &mut [u32], which: u32) {
    match which {
        0 => {
            #[kernel(tblock(4), thread(4))]
            {
                x[0] = 1;
            }
        }
        _ => {}
    }
}

fn main() {}
