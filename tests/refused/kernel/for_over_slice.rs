//! For over what is made of the elements of a slice.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    for v in x.iter().chain(y.iter()) {
        y[0] += v;
    }
    for v in x.rchunks(3) {
        y[0] += v[0];
    }
}

fn main() {}
