//! A message of `expect` that is no text.
use kiln::prelude::*;

const MESSAGE: &str = "there is none";

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    y[0] = x.first().copied().expect(MESSAGE);
}

fn main() {}
