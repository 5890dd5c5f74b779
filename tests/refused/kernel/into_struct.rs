//! `into` of what is no number.
use kiln::prelude::*;

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Meters(f32);

impl From<f32> for Meters {
    fn from(value: f32) -> Meters {
        Meters(value)
    }
}

#[kernel]
fn lengths(x: &[f32], y: &mut [Meters]) {
    y[0] = x[0].into();
}

fn main() {}
