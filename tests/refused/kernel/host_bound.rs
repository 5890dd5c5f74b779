//! Host bound.
use kiln::prelude::*;

#[kernel]
fn k<T: std::fmt::Debug>(x: &[T], y: &mut [T]) {
    y[0] = x[0];
}

fn main() {}
