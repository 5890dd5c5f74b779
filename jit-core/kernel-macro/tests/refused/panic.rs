//! Panic.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    if x.len() == 0 {
        panic!("empty");
    }
    y[0] = 1.0;
}

fn main() {}
