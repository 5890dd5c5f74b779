//! A function with type parameters.

use kiln::prelude::*;

#[kiln::offload]
fn f<T: Num>(x: &mut [T]) {
    #[kernel(tblock(4), thread(4))]
    {
        x[0] += x[1];
    }
}

fn main() {}
