//! Bodies of traits that kernels do not have, and one that is called where the type is known.
use kiln::prelude::*;

#[device_fn]
trait Scaled<T> {
    fn scaled(&self, by: T) -> f32;
}

#[device_fn]
trait Shape: Copy {
    fn area(&self) -> f32;
    fn mapped<F: Fn(f32) -> f32>(&self, f: F) -> f32 {
        f(self.area())
    }
    fn both(&self, other: impl Shape) -> f32 {
        self.area() + other.area()
    }
    fn text(&self) -> f32 {
        let text = "area";
        self.area() + text.len() as f32
    }
}

#[device_fn(fast)]
trait Fast {
    fn speed(&self) -> f32 {
        1.0
    }
}

#[device_fn]
trait Twice: Copy {
    fn once(&self) -> f32;
    fn twice(&self) -> f32 {
        2.0 * self.once()
    }
}

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Square(f32);

#[device_fn]
impl Twice for Square {
    fn once(&self) -> f32 {
        self.0
    }
}

#[kernel]
fn k(x: &[Square], y: &mut [f32]) {
    y[0] = x[0].twice();
}

fn main() {}
