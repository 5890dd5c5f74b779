//! A pattern that leaves something out.
use kiln::prelude::*;

#[kernel]
fn k(y: &mut [u32]) {
    let Some(n) = y.get(3).copied();
    y[0] = n;
}

fn main() {}
