//! Inner function.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    fn inner() -> f32 {
        1.0
    }
    y[0] = inner();
}

fn main() {}
