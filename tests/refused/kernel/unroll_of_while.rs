//! Unroll of while.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    let mut i = 0;
    #[unroll]
    while i < 4 {
        i += 1;
    }
    y[0] = i as f32;
}

fn main() {}
