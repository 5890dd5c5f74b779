//! Patterns that leave something out.
use kiln::prelude::*;

#[kernel]
fn k(y: &mut [u32]) {
    let Some(n) = y.get(3).copied();
    match n.checked_add(1) {
        Some(m) => y[0] = m,
    }
}

fn main() {}
