//! Box new.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    let v = Box::new(1.0);
    y[0] = *v;
}

fn main() {}
