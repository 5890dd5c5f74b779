//! Writes random Rust functions for `tests/functions.rs`, which runs them on the host and through the
//! JIT. rustc has to see them, so they are made before the test is compiled, from fixed seeds.

#[path = "../src/random.rs"]
#[allow(dead_code, reason = "the library uses all of it")]
mod random;

mod expression;
mod statement;

use std::io::{Error, Result};
use std::path::Path;

/// How many functions there are.
const FUNCTIONS: u64 = 120;

fn main() -> Result<()> {
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed=src/random.rs");
    let folder = std::env::var_os("OUT_DIR").ok_or_else(|| Error::other("cargo sets OUT_DIR"))?;
    let mut text = String::new();
    let mut names = String::new();
    for seed in 0..FUNCTIONS {
        let name = format!("random_{seed}");
        text += &statement::function(&name, seed);
        names += &format!(" {name}");
    }
    text += &format!("cases! {{{names} }}\n");
    std::fs::write(Path::new(&folder).join("functions.rs"), text)
}
