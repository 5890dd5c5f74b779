//! Assert: messages that are formatted, and what is left out.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    assert!(x.len() == y.len(), "{} and {}", x.len(), y.len());
    assert_eq!(x.len(), y.len(), "of {x:?}");
    assert_eq!(x.len());
    debug_assert!();
}

fn main() {}
