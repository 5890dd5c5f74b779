//! Writes random Rust functions for `functions.rs`, which runs them on the host and through the
//! JIT. rustc has to see them, so they are made before the test is compiled.
//!
//! The seeds are fixed, so that a build says the same twice. `KILN_FUNCTIONS_SEED` (the first seed) and
//! `KILN_FUNCTIONS_COUNT` (how many follow) choose others; `cargo xtask fuzz --functions` sets them. A
//! function has its seed in its name, and depends on nothing else: one that failed comes back alone with
//! its seed and a count of 1.

#[path = "../../src/random.rs"]
#[allow(dead_code, reason = "the library uses all of it")]
mod random;

mod expression;
mod statement;

use std::io::{Error, Result};
use std::path::Path;

/// How many functions there are if nobody says.
const FUNCTIONS: u64 = 120;

fn main() -> Result<()> {
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed=../src/random.rs");
    let first = number("KILN_FUNCTIONS_SEED", 0)?;
    let count = number("KILN_FUNCTIONS_COUNT", FUNCTIONS)?;
    let folder = std::env::var_os("OUT_DIR").ok_or_else(|| Error::other("cargo sets OUT_DIR"))?;
    let mut text = String::new();
    let mut names = String::new();
    for seed in (0..count).map(|i| first.wrapping_add(i)) {
        let name = format!("random_{seed}");
        text += &statement::function(&name, seed);
        names += &format!(" {name}");
    }
    text += &format!("cases! {{{names} }}\n");
    std::fs::write(Path::new(&folder).join("functions.rs"), text)
}

/// The number in an environment variable; `default` if it is not set.
fn number(variable: &str, default: u64) -> Result<u64> {
    println!("cargo::rerun-if-env-changed={variable}");
    match std::env::var(variable) {
        Ok(text) if !text.is_empty() => text.parse().map_err(|_| {
            Error::other(format!(
                "{variable} is `{text}`; set it to a whole number, or unset it"
            ))
        }),
        _ => Ok(default),
    }
}
