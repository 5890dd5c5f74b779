//! Types with lifetimes, and types of the host, that are no views.
use kiln::prelude::*;

struct Tensor<'a> {
    data: &'a [f32],
}

#[derive(KernelView)]
struct Outer<'a> {
    inner: Tensor<'a>,
    columns: u32,
}

#[kernel]
fn first(t: Tensor<'_>, out: &mut [f32]) {
    out[0] = t.data[0];
}

struct HostTensor {
    data: Buffer<f32>,
}

#[kernel]
fn second(t: HostTensor, out: &mut [f32]) {
    out[0] = 1.0;
}

fn main() {}
