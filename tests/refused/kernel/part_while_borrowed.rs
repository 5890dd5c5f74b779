//! Parts of a slice borrow all of it, as in Rust.
use kiln::prelude::*;

#[kernel]
fn k(x: &mut [f32]) {
    let left = &mut x[..4];
    let right = &mut x[4..];
    left[0] = right[0];
}

fn main() {}
