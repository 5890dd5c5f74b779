//! The workspace: its folders, its targets, and running cargo and other programs in it.
//!
//! Every command of this crate works from any folder of the workspace, because paths start from
//! [`root`] and programs are started there.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::error::{Error, Result};

/// The folder with the workspace's `Cargo.toml`.
pub(crate) fn root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package)
}

/// Where downloaded tools and packed libraries are kept: inside cargo's target folder, so that
/// `cargo clean` removes them.
pub(crate) fn tools_folder() -> PathBuf {
    target_folder().join("kiln-tools")
}

/// Cargo's target folder.
pub(crate) fn target_folder() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").filter(|set| !set.is_empty());
    root().join(target.unwrap_or_else(|| "target".into()))
}

/// The cargo that started this program, in the workspace's root.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Runs a program to its end, showing its output. `what` names the step in the error.
pub(crate) fn run(command: &mut Command, what: &str, help: &'static str) -> Result<()> {
    let status = command
        .status()
        .map_err(|source| cannot_start(command, source, help))?;
    match status.success() {
        true => Ok(()),
        false => Err(Error::Failed {
            what: what.to_owned(),
            status,
            help,
        }),
    }
}

/// Runs a program to its end and gives back its standard output; its error output is shown.
pub(crate) fn output(command: &mut Command, what: &str, help: &'static str) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output();
    let output = output.map_err(|source| cannot_start(command, source, help))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(Error::Failed {
            what: what.to_owned(),
            status: output.status,
            help,
        }),
    }
}

/// The error for a program that does not start.
pub(crate) fn cannot_start(command: &Command, source: std::io::Error, help: &'static str) -> Error {
    let program = command.get_program().to_string_lossy().into_owned();
    Error::CannotStart {
        program,
        source,
        help,
    }
}

/// What a program of the workspace is for.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TargetKind {
    /// A test program under `tests/`.
    Test,
    /// A program under `examples/`.
    Example,
    /// A program under `benches/`.
    Bench,
}

impl TargetKind {
    /// The kind as cargo spells it, also in its options (`--bench NAME`).
    pub(crate) fn name(self) -> &'static str {
        match self {
            TargetKind::Test => "test",
            TargetKind::Example => "example",
            TargetKind::Bench => "bench",
        }
    }

    /// The kind of a target as cargo's JSON describes it, if it is one of these.
    pub(crate) fn of(target: &Value) -> Option<TargetKind> {
        let kind = target.get("kind")?.get(0)?.as_str()?;
        let kinds = [TargetKind::Test, TargetKind::Example, TargetKind::Bench];
        kinds.into_iter().find(|k| k.name() == kind)
    }
}

/// A program of the workspace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Target {
    /// What it is for.
    pub(crate) kind: TargetKind,
    /// Its name, as in `--example NAME`.
    pub(crate) name: String,
    /// The package that it is of.
    pub(crate) package: String,
}

/// The examples, benches and test programs of the workspace that need no extra feature.
pub(crate) fn targets() -> Result<Vec<Target>> {
    let command = "cargo metadata";
    let mut metadata = cargo();
    metadata.args(["metadata", "--no-deps", "--format-version", "1"]);
    let text = output(&mut metadata, command, "Check Cargo.toml")?;
    targets_in(&text).map_err(|source| Error::CargoOutput { command, source })
}

/// Reads [`targets`] from the JSON of `cargo metadata`.
fn targets_in(metadata: &str) -> serde_json::Result<Vec<Target>> {
    let metadata: Value = serde_json::from_str(metadata)?;
    let packages = metadata
        .get("packages")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let described = packages.filter_map(|p| {
        let targets = p.get("targets")?.as_array()?;
        let package = p.get("name")?.as_str()?;
        Some(targets.iter().map(move |target| (package, target)))
    });
    let free = described
        .flatten()
        .filter(|(_, t)| t.get("required-features").is_none());
    let mut targets: Vec<Target> = free
        .filter_map(|(package, t)| {
            Some(Target {
                kind: TargetKind::of(t)?,
                name: t.get("name")?.as_str()?.to_owned(),
                package: package.to_owned(),
            })
        })
        .collect();
    targets.sort();
    Ok(targets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_by_kind() {
        let text = r#"{"packages": [{"name": "kiln", "targets": [
            {"kind": ["lib"], "name": "kiln"},
            {"kind": ["bench"], "name": "launch"},
            {"kind": ["example"], "name": "quickstart"},
            {"kind": ["example"], "name": "more", "required-features": ["x"]}]}]}"#;
        let target = |kind, name: &str| Target {
            kind,
            name: name.to_owned(),
            package: "kiln".to_owned(),
        };
        let expected = [
            target(TargetKind::Example, "quickstart"),
            target(TargetKind::Bench, "launch"),
        ];
        assert_eq!(targets_in(text).expect("it is JSON"), expected);
    }

    #[test]
    fn this_workspace_is_found() {
        assert!(
            root().join("Cargo.lock").is_file(),
            "{} is not the workspace",
            root().display()
        );
        assert!(targets().is_ok());
    }
}
