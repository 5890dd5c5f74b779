//! Assert of what is no condition, or cannot be compared.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    assert!(x.len());
    assert_eq!(y[0], 1u32);
    let n: u32 = match x.len() {
        0 => panic!("empty"),
        _ => assert!(y[0] > 0.0),
    };
    y[1] = n as f32;
}

fn main() {}
