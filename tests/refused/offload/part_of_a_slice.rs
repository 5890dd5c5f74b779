//! A part of a slice under another name.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &mut [u32]) {
    let part: &mut [u32] = &mut x[1..];
    #[kernel(tblock(4), thread(4))]
    {
        #[loop_partition(over_thread)]
        for i in 0..part.len() {
            part[i] = 1;
        }
    }
}

fn main() {}
