//! Slice pattern.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    match x {
        [a, ..] => y[0] = *a,
        _ => {}
    }
}

fn main() {}
