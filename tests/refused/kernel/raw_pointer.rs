//! Raw pointer.
use kiln::prelude::*;

#[kernel]
fn k(p: *const f32, y: &mut [f32]) {
    y[0] = 1.0;
}

fn main() {}
