//! `cargo xtask bench-peers`: what `benches/cpu.rs` compares Kiln with, under `target/kiln-peers`.
//!
//! ```text
//! loops            the C loops of benches/peers/cpu/loops.c, functions.c and nests.c, compiled by gcc
//! python           starts the Python that has the wheels, with OpenCL pointed at its CPU platforms
//! venv             Intel's OpenCL for CPUs, pocl and numba, by requirements-peers.txt
//! icd              names Intel's OpenCL library to the OpenCL loader
//! ```
//!
//! The peers are independent: one that cannot be set up is reported, and the others are set up.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Error, Result};
use crate::wheels::{self, remove};
use crate::workspace::{output, root, run, target_folder};

const REQUIREMENTS: &str = include_str!("../requirements-peers.txt");
const GCC_HELP: &str = "Install gcc (Debian and Ubuntu: apt-get install gcc libc6-dev)";
const PIP_HELP: &str = "Check the network and pip's configuration; the wheels are pinned for Python 3.11 to 3.14 on \
     Linux on x86-64";
const TRY_HELP: &str = "See its output above; if a file is broken, remove the folder and try again";
const INTEL_LIBRARY: &str = "libintelocl.so";

/// The flags of the C loops. Without `-fno-math-errno` gcc vectorizes no square root.
const GCC_FLAGS: &[&str] = &[
    "-O3",
    "-march=native",
    "-fopenmp",
    "-fno-math-errno",
    "-std=gnu11",
];

/// A line for each peer that is a Python program: its name, the program, and what that takes before kernel
/// and size. The bench starts them by it.
const STARTED: &str = include_str!("../../benches/peers/cpu/started.txt");

/// Sets up all peers and tries each.
///
/// # Errors
/// [`Error::PeersMissing`] if a peer is not ready; why is printed.
pub(crate) fn setup() -> Result<()> {
    let folder = target_folder().join("kiln-peers");
    fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
    // Two commands at once would install into the same folder; the lock ends with the file handle.
    let path = folder.join("lock");
    let lock = File::create(&path).map_err(Error::io("create", &path))?;
    lock.lock().map_err(Error::io("lock", &path))?;

    // pocl leaves files there, even with its cache switched off.
    remove(&folder.join("cache"))?;
    let mut missing = Vec::new();
    let mut report = |peer: &'static str, result: Result<()>| match result {
        Ok(()) => println!("{peer}: ready"),
        Err(error) => {
            eprintln!("{peer}: {error}");
            missing.push(peer);
        }
    };
    report("gcc", compile_loops(&folder));
    match install_python(&folder) {
        Ok(()) => {
            for (peer, command) in python_peers() {
                report(peer, try_python(&folder, peer, command));
            }
        }
        Err(error) => {
            eprintln!("wheels: {error}");
            missing.extend(python_peers().map(|(peer, _)| peer));
        }
    }
    match missing.is_empty() {
        true => Ok(()),
        false => Err(Error::PeersMissing { names: missing }),
    }
}

/// The peers that are Python programs: name, program with what goes before kernel and size.
fn python_peers() -> impl Iterator<Item = (&'static str, &'static str)> {
    STARTED.lines().filter_map(|line| line.split_once(' '))
}

/// The folder with the peers' sources.
fn sources() -> PathBuf {
    root().join("benches/peers/cpu")
}

/// Compiles the C loops, for this machine's processor, and tries them.
fn compile_loops(folder: &Path) -> Result<()> {
    let program = folder.join("loops");
    remove(&program)?;
    let mut gcc = Command::new("gcc");
    gcc.args(GCC_FLAGS);
    gcc.args(["loops.c", "functions.c", "nests.c"].map(|file| sources().join(file)));
    gcc.arg("-o").arg(&program).arg("-lm");
    run(&mut gcc, "compiling the C loops", GCC_HELP)?;
    answers("gcc", Command::new(&program).args(["fused", "1024"]))
}

/// Installs the wheels unless they are there, and writes what starts their Python.
fn install_python(folder: &Path) -> Result<()> {
    let (stamp, starter) = (folder.join("stamp"), folder.join("python"));
    let installed = fs::read_to_string(&stamp).unwrap_or_default();
    if installed == REQUIREMENTS && starter.is_file() && libraries(folder).is_ok() {
        return Ok(());
    }
    eprintln!(
        "xtask: installing peers under {}, once; this downloads 1.3 GB",
        folder.display()
    );
    for old in [&stamp, &starter] {
        remove(old)?;
    }
    let requirements = folder.join("requirements.txt");
    fs::write(&requirements, REQUIREMENTS).map_err(Error::io("write", &requirements))?;
    wheels::install_in_environment(folder, &requirements, "the peers' wheels", PIP_HELP)?;
    write_starter(folder, &starter)?;
    fs::write(&stamp, REQUIREMENTS).map_err(Error::io("write", &stamp))
}

/// The folder with the libraries that wheels brought.
fn libraries(folder: &Path) -> Result<PathBuf> {
    let place = folder.join("venv/lib");
    match place.join(INTEL_LIBRARY).exists() {
        true => Ok(place),
        false => Err(Error::MissingFile {
            file: INTEL_LIBRARY,
            folder: place,
        }),
    }
}

/// Writes the script that starts the Python of the wheels, and the file that names Intel's library
/// to the OpenCL loader.
fn write_starter(folder: &Path, starter: &Path) -> Result<()> {
    let folder = folder.canonicalize().map_err(Error::io("find", folder))?;
    let libraries = libraries(&folder)?;
    let icd = folder.join("icd");
    fs::create_dir_all(&icd).map_err(Error::io("create", &icd))?;
    let path = icd.join("intel.icd");
    let library = format!("{}\n", libraries.join(INTEL_LIBRARY).display());
    fs::write(&path, library).map_err(Error::io("write", &path))?;

    let text = starter_text(&folder, &libraries);
    fs::write(starter, text).map_err(Error::io("write", starter))?;
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(starter, executable).map_err(Error::io("make executable", starter))
}

/// The script that starts Python. No cache may hide what compiling costs.
fn starter_text(folder: &Path, libraries: &Path) -> String {
    let quote = |path: &Path| format!("'{}'", path.display().to_string().replace('\'', r"'\''"));
    format!(
        "#!/bin/sh\n\
         # Written by `cargo xtask bench-peers`: Python with the peers of `cargo bench --bench cpu`.\n\
         export OCL_ICD_VENDORS={} LD_LIBRARY_PATH={} POCL_CACHE_DIR={}\n\
         export PYTHONDONTWRITEBYTECODE=1 POCL_KERNEL_CACHE=0 PYOPENCL_NO_CACHE=1\n\
         exec {} \"$@\"\n",
        quote(&folder.join("icd")),
        quote(libraries),
        quote(&folder.join("cache")),
        quote(&folder.join("venv/bin/python")),
    )
}

/// Tries a peer that is a Python program.
fn try_python(folder: &Path, peer: &'static str, command: &str) -> Result<()> {
    let mut python = Command::new(folder.join("python"));
    add_program(&mut python, command);
    answers(peer, python.args(["fused", "1024"]))
}

/// Adds a program and what goes before kernel and size to the call of a Python.
fn add_program(python: &mut Command, command: &str) {
    let mut words = command.split(' ');
    python.args(words.next().map(|script| sources().join(script)));
    python.args(words);
}

/// Whether a peer that is started with a kernel and no request gets ready.
fn answers(peer: &'static str, command: &mut Command) -> Result<()> {
    let text = output(command, &format!("trying {peer}"), TRY_HELP)?;
    let answer = text.lines().next().unwrap_or_default();
    match answer.starts_with("ready ") {
        true => Ok(()),
        false => Err(Error::PeerSilent {
            peer,
            answer: answer.to_owned(),
            help: TRY_HELP,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wheel_is_pinned() {
        let text = REQUIREMENTS.replace("\\\n", " ");
        let lines = text
            .lines()
            .filter(|l| !l.starts_with('#') && !l.is_empty());
        for wheel in lines {
            assert!(wheel.contains("=="), "no version: {wheel}");
            // One wheel for every Python, or one for each version.
            let digests = wheel.matches("--hash=sha256:").count();
            assert!([1, 4].contains(&digests), "{digests} digests: {wheel}");
        }
    }

    /// Runs a program with what it imports replaced by stand-ins that take and give anything.
    const WITH_STAND_INS: &str = r#"
import os, runpy, sys
from unittest.mock import MagicMock, Mock

cl = MagicMock()
cl.get_platforms.return_value = [Mock()]
cl.get_platforms.return_value[0].name = "Intel, Portable"
sys.modules.update(numpy=MagicMock(), numba=MagicMock(), pyopencl=cl)
del sys.argv[0]
sys.path.insert(0, os.path.dirname(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
"#;

    #[test]
    fn programs_take_what_they_are_started_with() {
        let mut peers = 0;
        for (peer, command) in python_peers() {
            let mut python = Command::new("python3");
            python.args(["-B", "-c", WITH_STAND_INS]);
            add_program(&mut python, command);
            // No peer has such a kernel, and says so once it has read all arguments.
            let answer = output(python.args(["no-such-kernel", "1024"]), peer, TRY_HELP);
            assert_eq!(answer.expect("it ends well"), "none\n", "{peer}");
            peers += 1;
        }
        assert_eq!(peers, 4);
    }

    #[test]
    fn c_loops_are_compiled_and_answer() {
        let folder = std::env::temp_dir().join(format!("kiln-xtask-peers-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a temporary folder");
        let compiled = compile_loops(&folder);
        fs::remove_dir_all(&folder).expect("it was made above");
        compiled.expect("the loops answer");
    }

    #[test]
    fn the_starter_quotes_paths() {
        let text = starter_text(Path::new("/a b/c'd"), Path::new("/a b/lib"));
        assert!(text.contains(r"OCL_ICD_VENDORS='/a b/c'\''d/icd' LD_LIBRARY_PATH='/a b/lib'"));
        assert!(text.ends_with("exec '/a b/c'\\''d/venv/bin/python' \"$@\"\n"));
    }
}
