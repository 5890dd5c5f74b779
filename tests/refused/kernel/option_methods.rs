//! Methods of options that kernels do not have.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    let first = x.first().copied();
    y[0] = first.inspect(|v| assert!(*v > 0.0)).unwrap();
    y[1] = first.map(f32::sqrt).unwrap();
    y[2] = first.mapp(|v| v + 1.0);
}

fn main() {}
