//! Iterators that are no chain of a kernel's.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    y[0] = x.iter().scan(0.0, |sum, v| Some(*sum + v)).sum();
    let all = x.windows(2);
    y[1] = x.iter().map(|&v| { if v < 0.0 { return 0.0; } v }).sum();
    let steps = x.iter().map(|v| v + 1.0).rev().count();
}

fn main() {}
