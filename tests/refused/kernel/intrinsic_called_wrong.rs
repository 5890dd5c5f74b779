//! An intrinsic with other arguments than it takes.
use kiln::prelude::*;

kiln::intrinsic! {
    fn mul_high(x: u32, y: u32) -> u32 {
        ((u64::from(x) * u64::from(y)) >> 32) as u32
    } = row("example.mul_high");
}

#[kernel]
fn k(x: &mut [u32]) {
    x[0] = mul_high(x[1]);
    x[1] = mul_high(x[2], 1.5);
}

fn main() {}
