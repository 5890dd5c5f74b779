//! Println.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    println!("{}", x[0]);
}

fn main() {}
