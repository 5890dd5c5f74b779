//! What a function cannot choose.
use kiln::prelude::*;

#[kernel(unchecked)]
fn without_unsafe(y: &mut [f32]) {
    y[0] = 1.0;
}

#[kernel(clamped, checked)]
fn both(y: &mut [f32]) {
    y[0] = 1.0;
}

#[kernel(fast(quick))]
fn unknown_flag(y: &mut [f32]) {
    y[0] = 1.0;
}

#[kernel(max_registers(8))]
fn few_registers(y: &mut [f32]) {
    y[0] = 1.0;
}

#[kernel(unroll(0))]
fn no_turns(y: &mut [f32]) {
    y[0] = 1.0;
}

#[kernel(inline_threshold(-1))]
fn negative(y: &mut [f32]) {
    y[0] = 1.0;
}

#[device_fn(unroll(4))]
fn unrolled(x: f32) -> f32 {
    x
}

#[device_fn(clamped)]
fn of_a_kernel(x: &[f32]) -> f32 {
    x[0]
}

#[device_fn(fast(flush))]
fn flushes(x: f32) -> f32 {
    x
}

#[kernel]
fn no_closure(y: &mut [f32]) {
    y[0] = approximate(y[1] / y[2]);
}

fn main() {}
