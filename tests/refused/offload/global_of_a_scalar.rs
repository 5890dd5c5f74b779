//! A scalar that is to have memory on the device.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &mut [u32], n: usize) {
    global!(alloc n);
    #[kernel(tblock(1), thread(32))]
    {
        x[0] = n as u32;
    }
}

fn main() {}
