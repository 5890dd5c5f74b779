//! Memory of what not any bits are a value of, or that has padding.
use kiln::prelude::*;

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Point {
    x: u8,
    y: f32,
}

#[kernel]
fn look(points: &[Point], flags: &[bool], out: &mut [u32]) {
    out[0] = cast_slice::<u32>(points)[0];
    out[1] = cast_slice::<u8>(flags)[1] as u32;
}

fn main() {}
