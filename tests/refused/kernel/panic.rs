//! Panic: a message that is formatted, and panics of other names.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    if x.len() == 0 {
        panic!("empty: {}", x.len());
    }
    if x.len() == 1 {
        todo!();
    }
    y[0] = unreachable!(NAME);
}

fn main() {}
