//! Self parameter.
use kiln::prelude::*;

struct S;
impl S {
    #[device_fn]
    fn f(&self) -> f32 {
        1.0
    }
}

fn main() {}
