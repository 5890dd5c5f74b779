//! A cache hint for what no instruction reads by itself.
use kiln::prelude::*;

#[kernel]
fn copy(x: &[u8], y: &mut [u8]) {
    let i = global_id().x;
    y[i] = load_streaming(&x[i]);
}

fn main() {}
