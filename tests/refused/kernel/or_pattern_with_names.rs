//! Alternatives with names behind a guard, and such that bind different names.
use kiln::prelude::*;

#[kernel]
fn k(x: &[u32], y: &mut [f32]) {
    match (x[0], Some(x[1]), 1) {
        (0, Some(n) , 1) | (n, _, 0) => y[n as usize] = 2.0,
        (1, Some(n), m) | (n, _, 3) => y[n as usize] = 2.0,
        ((n @ 5..9 | n @ 7..12), _, _) if n > 7 => y[n as usize] = 3.0,
        _ => {}
    }
}

fn main() {}
