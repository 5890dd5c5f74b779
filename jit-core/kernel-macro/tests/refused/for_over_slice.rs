//! For over what is made of the elements of a slice.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    for v in x.iter().chain(y.iter()) {
        y[0] += v;
    }
    for (i, v) in x.iter().filter(|v| **v > 0.0).enumerate() {
        y[i] += v;
    }
    for (i, v) in x.iter().skip(1).enumerate() {
        y[i] += v;
    }
    for v in x.chunks(3) {
        y[0] += v[0];
    }
}

fn main() {}
