//! Let else.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    let 0..=3 = thread_idx().x else { return };
}

fn main() {}
