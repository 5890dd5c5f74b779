//! Unroll factor.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    #[unroll(0)]
    for i in 0..4 {
        y[i] = 1.0;
    }
}

fn main() {}
