//! If let.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    if let 0..=3 = thread_idx().x {
        y[0] = 1.0;
    }
}

fn main() {}
