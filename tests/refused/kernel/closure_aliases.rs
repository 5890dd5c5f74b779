//! A closure holds on to what it assigns.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    let mut sum = 0.0;
    let mut add = |v: f32| sum += v;
    add(x[0]);
    sum = 1.0;
    add(x[1]);
    y[0] = sum;
}

fn main() {}
