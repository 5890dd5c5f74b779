//! Conversions that may fail, where it is not said what then.
use kiln::prelude::*;

#[kernel]
fn numbers(y: &mut [u32]) {
    let i: u32 = global_id().x.try_into().unwrap_or(0);
    y[0] = i;
    y[1] = u32::try_from(y.len()).unwrap();
}

fn main() {}
