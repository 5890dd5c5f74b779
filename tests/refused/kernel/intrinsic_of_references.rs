//! An intrinsic that writes where an argument says, and does not say so.
use kiln::prelude::*;

#[device_fn]
fn replaced(place: &mut u32, new: u32) -> u32 {
    let old = *place;
    *place = new;
    old
}

kiln::intrinsic! {
    fn swap(place: &mut u32, new: u32) -> u32 = row("example.swap", replaced);
}

fn main() {
    swap::row();
}
