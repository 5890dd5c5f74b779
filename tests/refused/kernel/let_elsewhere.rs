//! A `let` that is no condition by itself.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    if let Some(v) = x.first() || y.is_empty() {
        y[0] = 1.0;
    }
}

fn main() {}
