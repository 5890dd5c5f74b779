//! A vector that does not live as long as the function.

use kiln::prelude::*;

#[kiln::offload]
fn f(n: usize) {
    for _ in 0..2 {
        let mut v: Vec<u32> = vec![0; n];
        #[kernel(tblock(4), thread(4))]
        {
            #[loop_partition(over_thread)]
            for i in 0..n {
                v[i] = 1;
            }
        }
    }
}

fn main() {}
