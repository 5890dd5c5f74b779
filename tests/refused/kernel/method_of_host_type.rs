//! Methods of a type that kernels cannot hold.
use kiln::prelude::*;

struct Names {
    count: u32,
}

#[device_fn]
impl Names {
    fn count(&self) -> u32 {
        self.count
    }
}

fn main() {}
