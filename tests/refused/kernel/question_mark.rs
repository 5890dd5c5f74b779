//! The question mark where nothing returns an option.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    y[0] = *x.first()?;
    let first = |x: &[f32]| -> Option<f32> { Some(*x.first()? + 1.0) };
    y[1] = first(x).unwrap_or(2.0);
}

#[device_fn]
fn plain(x: &[f32]) -> f32 {
    *x.first()?
}

fn main() {}
