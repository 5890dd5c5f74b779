//! Shared in device fn.
use kiln::prelude::*;

#[device_fn]
fn f() {
    let tile = shared!([f32; 32]);
    tile[0] = 1.0;
}

fn main() {}
