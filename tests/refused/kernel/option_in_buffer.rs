//! Options in memory that the host sees.
use kiln::prelude::*;

#[kernel]
fn k(x: &[Option<f32>], y: &mut [f32]) {
    y[0] = x[0].unwrap_or(1.0);
}

fn main() {}
