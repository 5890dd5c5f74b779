//! A view as a parameter that is not written with its lifetime.
use kiln::prelude::*;

#[derive(KernelView)]
struct Tensor<'a> {
    data: &'a [f32],
}

#[kernel]
fn first(t: Tensor, out: &mut [f32]) {
    out[0] = t.data[0];
}

fn main() {}
