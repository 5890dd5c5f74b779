//! What is printed that cannot be, or not so.
use kiln::prelude::*;

#[derive(KernelType, Copy, Clone)]
#[repr(C)]
struct NoDebug {
    x: f32,
}

#[kernel]
fn k(x: &[f32], v: NoDebug, y: &mut [f32]) {
    println!("{:x}", x[0]);
    println!("{:?}", v);
    println!("{}", (1, 2));
    y[0] = dbg!();
}

fn main() {}
