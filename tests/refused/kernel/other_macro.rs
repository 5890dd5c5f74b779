//! Other macro.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    y[0] = my_macro!(x);
}

fn main() {}
