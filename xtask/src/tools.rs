//! NVIDIA's command-line tools, installed from the Python wheels that NVIDIA publishes.
//!
//! Tests assemble PTX with `ptxas` and read SASS with `nvdisasm`; benches compile CUDA C++ with
//! `nvcc`. None of them needs a GPU or a CUDA toolkit on the machine. The versions and digests are
//! in `requirements.txt` and `requirements-nvcc.txt`; pip refuses a file with another digest. All
//! of it lies under `target/kiln-tools`, and a stamp there holds the requirements that are
//! installed, so that a second call reads two small files and returns.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Error, Result};
use crate::wheels::{self, entries, remove};
use crate::workspace::tools_folder;

const PIP_HELP: &str = "Check the network and pip's configuration, then try again";

/// A set of tools that is installed together.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kit {
    /// `ptxas`, `nvdisasm` and `cuobjdump`.
    Assembler,
    /// Those and `nvcc` with all it needs.
    Nvcc,
}

impl Kit {
    /// The pinned wheels, in pip's requirements format.
    fn requirements(self) -> String {
        let assembler = include_str!("../requirements.txt");
        match self {
            Kit::Assembler => assembler.to_owned(),
            Kit::Nvcc => format!("{assembler}{}", include_str!("../requirements-nvcc.txt")),
        }
    }

    /// What there is to download.
    fn size(self) -> &'static str {
        match self {
            Kit::Assembler => "50 MB",
            Kit::Nvcc => "130 MB",
        }
    }

    /// The tools that must be there after the installation.
    pub(crate) fn tools(self) -> &'static [&'static str] {
        match self {
            Kit::Assembler => &["ptxas", "nvdisasm", "cuobjdump"],
            Kit::Nvcc => &["ptxas", "nvdisasm", "cuobjdump", "nvcc"],
        }
    }
}

/// Installs a kit unless it is there. An installed [`Kit::Nvcc`] is a [`Kit::Assembler`] too.
pub(crate) fn setup(kit: Kit) -> Result<()> {
    let folder = tools_folder();
    fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
    // Two commands at once would install into the same folder; the lock ends with the file handle.
    let path = folder.join("lock");
    let lock = File::create(&path).map_err(Error::io("create", &path))?;
    lock.lock().map_err(Error::io("lock", &path))?;

    let stamp = folder.join("stamp");
    let installed = fs::read_to_string(&stamp).unwrap_or_default();
    let wanted = kit.requirements();
    if installed.starts_with(&wanted) && kit.tools().iter().all(|&t| tool(t).is_ok()) {
        return Ok(());
    }
    eprintln!(
        "xtask: installing NVIDIA's tools under {}, once; this downloads {}",
        folder.display(),
        kit.size()
    );
    remove(&stamp)?;
    let requirements = folder.join("requirements.txt");
    fs::write(&requirements, &wanted).map_err(Error::io("write", &requirements))?;
    wheels::install(&folder, &requirements, "NVIDIA's wheels", PIP_HELP)?;
    for name in kit.tools() {
        tool(name)?;
    }
    fs::write(&stamp, wanted).map_err(Error::io("write", &stamp))
}

/// Where an installed tool is.
///
/// # Errors
/// [`Error::MissingTool`] if [`setup`] has not installed it.
pub(crate) fn tool(name: &'static str) -> Result<PathBuf> {
    let folder = tools_folder();
    let found = tool_under(&folder, name);
    found.ok_or(Error::MissingTool { tool: name, folder })
}

/// Finds a tool in an environment's `lib/pythonX.Y/site-packages`, or in the plain folder. Wheels
/// put programs in `nvidia/<toolkit>/bin`.
fn tool_under(folder: &Path, name: &str) -> Option<PathBuf> {
    let environments = entries(&folder.join("venv/lib")).map(|python| python.join("site-packages"));
    let mut places = environments.chain([folder.join("wheels")]);
    places.find_map(|packages| {
        let mut toolkits = entries(&packages.join("nvidia")).map(|kit| kit.join("bin").join(name));
        toolkits.find(|path| path.is_file())
    })
}

/// Tells a command where the installed tools are, under the variables that Kiln reads
/// (`KILN_PTXAS`, `KILN_NVDISASM`), and puts an installed `nvcc` on its `PATH` unless one is there.
pub(crate) fn point_to_tools(command: &mut Command) {
    for (variable, name) in [("KILN_PTXAS", "ptxas"), ("KILN_NVDISASM", "nvdisasm")] {
        if let Ok(path) = tool(name) {
            command.env(variable, path);
        }
    }
    // The wheels of the assembler kit hold an nvcc that lacks its compiler, cicc.
    let Some(folder) = tool("nvcc")
        .ok()
        .and_then(|nvcc| Some(nvcc.parent()?.to_owned()))
    else {
        return;
    };
    if folder.join("../nvvm/bin/cicc").is_file() {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::env::split_paths(&path).chain([folder]);
        if let Ok(path) = std::env::join_paths(folders) {
            command.env("PATH", path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wheel_is_pinned_with_two_digests() {
        let text = Kit::Nvcc.requirements().replace("\\\n", " ");
        let wheels: Vec<&str> = text
            .lines()
            .filter(|l| !l.starts_with('#') && !l.is_empty())
            .collect();
        assert_eq!(wheels.len(), 6);
        for wheel in wheels {
            assert!(wheel.contains("=="), "no version: {wheel}");
            assert_eq!(
                wheel.matches("--hash=sha256:").count(),
                2,
                "x86-64 and aarch64: {wheel}"
            );
        }
    }

    #[test]
    fn the_larger_kit_contains_the_smaller() {
        assert!(
            Kit::Nvcc
                .requirements()
                .starts_with(&Kit::Assembler.requirements())
        );
    }

    #[test]
    fn tools_are_found_in_both_layouts() {
        let base = std::env::temp_dir().join(format!("kiln-xtask-tools-{}", std::process::id()));
        for layout in ["venv/lib/python3.9/site-packages", "wheels"] {
            let folder = base.join(layout.len().to_string());
            let bin = folder.join(layout).join("nvidia/cu13/bin");
            fs::create_dir_all(&bin).expect("a temporary folder");
            fs::write(bin.join("ptxas"), "").expect("a temporary file");
            assert_eq!(tool_under(&folder, "ptxas"), Some(bin.join("ptxas")));
            assert_eq!(tool_under(&folder, "nvdisasm"), None);
        }
        fs::remove_dir_all(&base).expect("it was made above");
    }
}
