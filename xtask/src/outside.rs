//! The crate of `tests/outside`, which is no part of the workspace: it sees of Kiln what any user does.

use std::process::Command;

use crate::error::{Error, Result};
use crate::workspace::{cargo, root, target_folder};

/// `cargo test` of it. What it depends on is pinned as in the workspace and built in the same folder, so that
/// only what its features make differ is compiled again.
pub(crate) fn tests() -> Result<Command> {
    let folder = root().join("tests/outside");
    let copied = std::fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock"));
    copied.map_err(Error::io("write", "tests/outside/Cargo.lock"))?;
    let mut command = cargo();
    command
        .args(["test", "--no-fail-fast", "--manifest-path"])
        .arg(folder.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(target_folder());
    Ok(command)
}
