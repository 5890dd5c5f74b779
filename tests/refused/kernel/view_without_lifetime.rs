//! A view that borrows nothing.
use kiln::prelude::*;

#[derive(KernelView)]
struct Shape {
    rows: u32,
    columns: u32,
}

fn main() {}
