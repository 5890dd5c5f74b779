//! Float pattern.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    match x[0] {
        1.0 => y[0] = 2.0,
        _ => {}
    }
}

fn main() {}
