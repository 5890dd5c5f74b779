//! Missing match arm.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    match x.len() {
        0 => y[0] = 1.0,
        1 => y[0] = 2.0,
    }
}

fn main() {}
