//! Or pattern with names.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    match (thread_idx().x, 1) {
        (0, n) | (n, 0) => y[n] = 2.0,
        _ => {}
    }
}

fn main() {}
