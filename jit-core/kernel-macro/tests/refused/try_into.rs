//! What rustc proposes for an index that is to be a `u32`.
use kiln::prelude::*;

#[kernel]
fn numbers(y: &mut [u32]) {
    let i: u32 = global_id().x.try_into().unwrap();
    y[0] = i;
    y[1] = u32::try_from(y.len()).unwrap();
}

fn main() {}
