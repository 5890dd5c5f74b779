//! Iterators outside of a `for`.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    y[0] = x.iter().sum();
    let all = x.windows(2);
}

fn main() {}
