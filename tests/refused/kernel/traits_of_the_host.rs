//! Traits as bounds that kernels cannot dispatch on.
use kiln::prelude::*;

trait Shape: Copy {
    fn area(&self) -> f32;
}

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Square(f32);

impl Shape for Square {
    fn area(&self) -> f32 {
        self.0
    }
}

#[device_fn]
fn area<T: Shape>(shape: T) -> f32 {
    shape.area()
}

#[kernel]
fn of_the_host(x: &mut [f32]) {
    x[0] = area(Square(1.0));
}

#[device_fn]
fn mapped<T: Shape, F: Fn(f32) -> f32>(shape: T, f: F) -> f32 {
    f(shape.area())
}

#[kernel]
fn generic<T: Shape>(x: &[T], y: &mut [f32]) {
    y[0] = x[0].area();
}

fn launched(jit: &Jit, squares: &Buffer<Square>, y: &mut Buffer<f32>) {
    let _ = generic.launch(jit, (1, 1), squares, y);
    let _ = jit.launch(&generic, 1, 1, args!(squares, y));
}

#[device_fn]
impl Shape for f32 {
    fn area(&self) -> f32 {
        *self
    }
}

#[device_fn]
impl Square {
    fn both<T: Shape>(self, other: T) -> f32 {
        self.0 + other.area()
    }
}

fn main() {}
