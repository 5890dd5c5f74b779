//! Element parameter.
use kiln::prelude::*;

#[kernel]
fn k(total: &mut f32) {
    *total = 1.0;
}

fn main() {}
