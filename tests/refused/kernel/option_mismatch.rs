//! Options and what is none.
use kiln::prelude::*;

#[device_fn]
fn odd(x: u32) -> Option<u32> {
    if x % 2 == 1 { Some(x) } else { None }
}

#[kernel]
fn k(y: &mut [u32], z: &mut [f32]) {
    let i = thread_idx().x;
    z[i] = odd(3).unwrap();
    if let Some(m) = y[i] {
        y[i] = m;
    }
    let nothing = None;
}

fn main() {}
