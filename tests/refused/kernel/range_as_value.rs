//! Ranges that are no variable of their own.
use kiln::prelude::*;

#[kernel]
fn ranges(x: &[f32], y: &mut [f32]) {
    let mut part = 0..x.len();
    let (head, tail) = (0..2, 2..4);
    let either = if y.len() > 2 { 0..2 } else { 1..3 };
    y[0] = x[part][0] + x[head][0] + x[tail][0] + x[either][0];
}

fn main() {}
