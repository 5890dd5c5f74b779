//! A partition outside of regions.

use kiln::prelude::*;

#[kiln::offload]
fn f(x: &mut [u32]) {
    #[loop_partition(over_thread)]
    for i in 0..x.len() {
        x[i] = 1;
    }
}

fn main() {}
