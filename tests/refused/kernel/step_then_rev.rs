//! Step then rev.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    for i in (0..10).step_by(2).rev() {
        y[i] = 1.0;
    }
}

fn main() {}
