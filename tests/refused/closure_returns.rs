//! A closure that returns early.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    let root = |v: f32| {
        if v < 0.0 {
            return 0.0;
        }
        v.sqrt()
    };
    y[0] = root(x[0]);
}

fn main() {}
