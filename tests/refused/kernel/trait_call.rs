//! Trait call.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    y[0] = <f32 as Default>::default();
}

fn main() {}
