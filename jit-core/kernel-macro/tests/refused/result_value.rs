//! Results.
use kiln::prelude::*;

#[device_fn]
fn half(x: u32) -> Result<u32, u32> {
    if x % 2 == 0 { Ok(x / 2) } else { Err(x) }
}

#[kernel]
fn k(y: &mut [u32]) {
    let n = match Ok(y[0]) {
        Ok(n) => n,
        Err(n) => n,
    };
    y[0] = n.checked_add(1).ok_or(3).unwrap();
}

fn main() {}
