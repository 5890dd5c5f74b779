//! One buffer as two views, of which one is written.
use kiln::prelude::*;

#[derive(KernelView)]
struct Read<'a> {
    data: &'a [f32],
}

#[derive(KernelView)]
struct Write<'a> {
    data: &'a mut [f32],
}

#[kernel]
fn copies(from: Read<'_>, to: Write<'_>) {
    to.data[0] = from.data[0];
}

#[kernel]
fn writes_what_is_read(from: Read<'_>) {
    from.data[0] = 1.0;
}

fn launch(jit: &Jit, x: &mut Buffer<f32>) -> kiln::Result<()> {
    copies.launch(jit, (1, 1), ReadArgs { data: x }, WriteArgs { data: x })
}

fn main() {}
