//! Const arguments where there are none, and of the wrong type.
use kiln::prelude::*;

#[device_fn]
fn plain(x: u32) -> u32 {
    x
}

#[device_fn]
fn times<const N: u32>(x: u32) -> u32 {
    x * N
}

#[kernel]
fn k(y: &mut [u32]) {
    y[0] = plain::<4>(y[1]);
    y[1] = times::<{ -1 }>(y[2]);
}

fn main() {}
