//! Device functions whose results may refer to constants.
use kiln::prelude::*;

#[derive(KernelType, Copy, Clone)]
#[repr(C)]
struct Point(f32, f32);

const LEAST: f32 = 0.5;

#[device_fn]
fn number(x: &[f32]) -> &f32 {
    if x[0] > LEAST { &x[0] } else { &0.5 }
}

#[device_fn]
fn name(x: &[f32]) -> Option<&f32> {
    if x[0] > LEAST { x.first() } else { Some(&LEAST) }
}

#[device_fn]
fn part(x: &[f32]) -> &[f32] {
    if x[0] > LEAST { x } else { &[1.0, 2.0, 3.0][1..] }
}

#[device_fn]
fn method(x: &[f32]) -> Option<&f32> {
    if x[0] > LEAST { x.first() } else { [1.0, 2.0].last() }
}

#[device_fn]
fn structure(x: &Point) -> &Point {
    if x.0 > LEAST { x } else { &Point(1.0, -2.0) }
}

fn main() {}
