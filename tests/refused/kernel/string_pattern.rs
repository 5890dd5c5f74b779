//! String pattern.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    match "a" {
        "a" => y[0] = 2.0,
        _ => {}
    }
}

fn main() {}
