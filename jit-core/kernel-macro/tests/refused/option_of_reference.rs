//! A device function that may return a reference.
use kiln::prelude::*;

#[device_fn]
fn first<'a>(x: &'a [f32]) -> Option<&'a f32> {
    x.first()
}

fn main() {}
