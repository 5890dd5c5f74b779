//! Not a function.
use kiln::prelude::*;

#[kernel]
struct S;

fn main() {}
