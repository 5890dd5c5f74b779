//! Operators that vectors do not have.
use kiln::prelude::*;

#[kernel]
fn compute(x: &mut [F32x4], n: &[U32x4]) {
    x[0] = -x[0] % 2.0;
    x[1] = x[0] + n[0];
}

fn main() {}
