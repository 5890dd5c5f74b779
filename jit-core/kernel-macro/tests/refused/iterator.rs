//! Iterator.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    for v in x.iter() {
        y[0] += *v;
    }
}

fn main() {}
