//! `cargo xtask miri` and `cargo xtask tsan`: Kiln's own code under what finds undefined behavior and data races. Both are
//! of nightly Rust.
//!
//! Miri interprets Rust alone, so it has what calls neither LLVM nor a driver nor compiled kernels: the IR and its text,
//! descriptions, arguments and values as bytes, and the interpreter with its memory. ThreadSanitizer has what threads of
//! a CPU device do, with a standard library that is compiled the same way; what kernels themselves access it does not see.

use std::process::Command;

use crate::error::Result;
use crate::workspace::{root, run};

/// What Miri runs: options of `cargo test`, and the tests of those, if it cannot run all of them.
const MIRI: &[(&[&str], Option<&str>)] = &[
    (
        &[
            "-p",
            "kiln-description",
            "-p",
            "kiln-ir",
            "-p",
            "kiln-interp",
            "--lib",
        ],
        None,
    ),
    (&["-p", "kiln-compiler", "--lib"], Some("value")),
    (
        &["-p", "kiln-jit-core", "--test", "stages"],
        Some("interpreter"),
    ),
];

/// Tests that try all of many values, which takes Miri hours and shows it nothing new.
const LONG: &[&str] = &[
    "every_block_has_one_place",
    "any_bytes_are_read_to_an_end",
    "only_long_lines_are_shortened",
    "races_are_found_as_defined",
];

/// Runs what Miri can run; with a filter what of that it names, of the crates whose tests Miri can run all.
///
/// # Errors
/// What it finds; a nightly toolchain without it.
pub(crate) fn miri(filter: Option<&str>) -> Result<()> {
    let mut all = Ok(());
    for (options, own) in MIRI {
        if filter.is_some() && own.is_some() {
            continue;
        }
        let mut command = nightly();
        command.args(["miri", "test"]).args(*options).arg("--");
        LONG.iter().for_each(|test| {
            command.args(["--skip", test]);
        });
        command.args(filter.or(*own));
        // Device memory of the interpreter is what its address says, as on a device.
        command.env("MIRIFLAGS", "-Zmiri-permissive-provenance");
        let ran = run(
            &mut command,
            "Miri",
            "See its output above; `rustup toolchain install nightly --component miri,rust-src` gets what it needs",
        );
        all = all.and(ran);
    }
    all
}

/// Runs the tests of the devices under ThreadSanitizer, or those that a filter names.
///
/// # Errors
/// What it finds; a nightly toolchain without the sources of the standard library.
pub(crate) fn tsan(filter: Option<&str>) -> Result<()> {
    let mut command = nightly();
    command.args(["test", "-Zbuild-std", "--target", TARGET]);
    command.args(["-p", "kiln-jit-runtime", "--lib", "--"]);
    // Loom's threads are coroutines, which the sanitizer does not know.
    command.args(["--skip", "model::"]).args(filter);
    command.env("RUSTFLAGS", "-Zsanitizer=thread");
    // What it is compiled with cannot be linked with anything else.
    command.env("CARGO_TARGET_DIR", root().join("target/tsan"));
    run(
        &mut command,
        "ThreadSanitizer",
        "See its output above; `rustup toolchain install nightly --component rust-src` gets what it needs",
    )
}

/// The machine that the sanitizer is run on.
const TARGET: &str = "x86_64-unknown-linux-gnu";

fn nightly() -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo"]);
    command.current_dir(root());
    // Of the toolchain that runs this program.
    for variable in ["CARGO", "RUSTC", "RUSTUP_TOOLCHAIN", "RUSTFLAGS"] {
        command.env_remove(variable);
    }
    command
}
