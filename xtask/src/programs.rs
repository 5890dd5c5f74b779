//! Running programs of the workspace: benches, examples, random kernels.
//!
//! People run them as `release` builds. Where all that matters is that they run, as in `cargo xtask commands`, they are
//! linked with the libraries that the tests of the workspace have: those are there, and a `release` build is all of
//! Kiln once more.

use std::collections::BTreeSet;
use std::process::Command;

use crate::error::Result;
use crate::workspace::{cargo, run, target_folder};

/// The variable that says, if it is 1, that programs are linked with the libraries of the tests.
pub(crate) const LIKE_TESTS: &str = "KILN_PROGRAMS_LIKE_TESTS";

const BUILD_HELP: &str = "Repair what the compiler reports above";

/// The program of random kernels.
const RANDOM: &str = "fuzz-kernels";

/// What builds it with a test of its package: by itself it would have other features, with which Kiln would be built once
/// more.
const BUILDS_RANDOM: [&str; 5] = ["test", "--workspace", "--no-run", "--test", "kernels"];

fn like_tests() -> bool {
    std::env::var_os(LIKE_TESTS).is_some_and(|value| value == "1")
}

/// `cargo bench` of the benches with a name, which may be a pattern. Only packages with such a bench are selected: those
/// of others would have features of their own, with which Kiln would be built once more.
pub(crate) fn bench(packages: &BTreeSet<&String>, name: &str) -> Command {
    let mut command = cargo();
    command.arg("bench");
    if like_tests() {
        command.args(["--workspace", "--profile", "dev"]);
    } else {
        for package in packages {
            command.args(["--package", package]);
        }
    }
    command.args(["--bench", name]);
    command
}

/// The program of random kernels, without options.
///
/// # Errors
/// That it does not build.
pub(crate) fn random_kernels() -> Result<Command> {
    let mut command = cargo();
    if !like_tests() {
        command.args(["run", "--release", "--package", "kiln-random", "--"]);
        return Ok(command);
    }
    command.args(BUILDS_RANDOM);
    run(&mut command, "building random kernels", BUILD_HELP)?;
    Ok(Command::new(target_folder().join("debug").join(RANDOM)))
}

/// A command of a document as a line of a shell that does the same with the libraries of the tests, started in the
/// root of the workspace.
pub(crate) fn line_like_tests(command: &str) -> String {
    let (program, arguments) = command.split_once(" -- ").unwrap_or((command, ""));
    let words: Vec<&str> = program.split(' ').collect();
    let built = |build: &str, file: &str| {
        let folder = target_folder().join("debug");
        format!("cargo {build} && '{}/{file}' {arguments}", folder.display())
    };
    match words[..] {
        ["cargo", "bench", .., "--bench", name] => {
            format!("cargo bench --workspace --profile dev --bench {name} -- {arguments}")
        }
        ["cargo", "run", "--release", "--example", name] => built(
            &format!("build --workspace --example {name}"),
            &format!("examples/{name}"),
        ),
        ["cargo", "run", "--release", "-p", "kiln-random"] => {
            built(&BUILDS_RANDOM.join(" "), RANDOM)
        }
        _ => command.to_owned(),
    }
}

#[cfg(test)]
mod check {
    use super::*;

    #[test]
    fn programs_are_those_that_are_named() {
        let bench = line_like_tests("cargo bench -p kiln-suite --bench suite -- --samples 3");
        let expected = "cargo bench --workspace --profile dev --bench suite -- --samples 3";
        assert_eq!(bench, expected);
        let example = line_like_tests("cargo run --release --example fit_csv -- x.svg");
        assert!(example.starts_with("cargo build --workspace --example fit_csv && '"));
        assert!(example.ends_with("/debug/examples/fit_csv' x.svg"));
        let random = line_like_tests("cargo run --release -p kiln-random -- --count 5");
        assert!(random.starts_with("cargo test --workspace --no-run --test kernels && '"));
        assert!(random.ends_with("/debug/fuzz-kernels' --count 5"));
        let other = "cargo xtask help";
        assert_eq!(line_like_tests(other), other);
    }
}
