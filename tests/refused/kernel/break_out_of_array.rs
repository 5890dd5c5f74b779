//! Break out of array.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    for i in [1, 2] {
        if i == 2 {
            break;
        }
        y[i] = 1.0;
    }
}

fn main() {}
