//! Async kernel.
use kiln::prelude::*;

#[kernel]
async fn k(y: &mut [f32]) {
    y[0] = 1.0;
}

fn main() {}
