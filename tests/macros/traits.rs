//! Traits whose bodies kernels do not know: the kernel is refused, with what to do.

use expect_test::expect;
use kiln::prelude::*;

trait Shape: Copy {
    fn area(&self) -> f32;
    fn twice(&self) -> f32 {
        2.0 * self.area()
    }
}

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Square(f32);

#[device_fn]
impl Shape for Square {
    fn area(&self) -> f32 {
        self.0 * self.0
    }
}

#[kernel]
fn bodies<S: Shape>(shapes: &[S], out: &mut [f32]) {
    out[0] = shapes[0].twice();
}

#[test]
fn bodies_of_a_trait_without_the_attribute_are_refused() {
    let kernel = bodies.of::<Square>();
    let error = kernel.get().map(|_| ()).expect_err("it is refused");
    let text = error.to_string();
    let (_, rest) = text.split_once("traits.rs:").expect("it has a place");
    let (_, rest) = rest.split_once(": ").expect("it has a text");
    expect!["the bounds of this type parameter have this function by another trait, or by a body that a trait has for all; mark the trait with `#[device_fn]`, or bound the parameter by the trait itself and write the function in the `impl` block of each type"].assert_eq(rest);
}
