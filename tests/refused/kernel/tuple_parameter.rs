//! Tuples have no layout that host and device share.

use kiln::prelude::*;

#[kernel]
fn pairs(by: (f32, f32), out: &mut [f32]) {
    out[0] = by.0 + by.1;
}

fn main() {}
