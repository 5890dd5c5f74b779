//! Globals are arrays.
use kiln::prelude::*;

kiln::global! {
    static COUNT: [u32; 4];
}

fn main() {}
