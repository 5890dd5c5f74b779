//! Results where kernels have none, and errors of another type.
use kiln::prelude::*;

#[device_fn]
fn half(x: u32) -> Result<u32, u32> {
    if x % 2 == 0 { Ok(x / 2) } else { Err(x) }
}

#[device_fn]
fn wider(x: u32) -> Result<u32, u64> {
    Ok(half(x)? + 1)
}

#[kernel]
fn k(y: &mut [u32], z: Result<u32, u32>) {
    let Ok(n) = half(y[0]);
    y[0] = n;
}

fn main() {}
