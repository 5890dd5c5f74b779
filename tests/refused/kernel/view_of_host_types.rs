//! Fields of a view that kernels cannot have.
use kiln::prelude::*;

#[derive(KernelType, Copy, Clone)]
#[repr(C)]
struct Scale {
    by: f32,
}

#[derive(KernelView)]
struct Tensor<'a> {
    heap: Vec<f32>,
    of_the_host: &'a Buffer<f32>,
    scale: &'a Scale,
    name: String,
    pair: (&'a [f32], u32),
    several: [&'a [f32]; 2],
    nested: &'a [&'a [f32]],
    address: *const f32,
}

fn main() {}
