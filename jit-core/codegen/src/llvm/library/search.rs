//! Where libLLVM is looked for.
//!
//! One known list of places, in order; nothing else is searched. A place is a folder in which the
//! file names of LLVM 22 are tried, a file, or a name left to the dynamic linker. Places that cost
//! something to find out (running `rustc`) are resolved only when their turn comes.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use kiln_ir::environment::Environment;

/// A place where libLLVM may be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SearchPlace {
    /// A file, or a folder holding the file: what a user names.
    Path(PathBuf),
    /// A folder that may hold the file.
    Folder(PathBuf),
    /// The `lib` folder of the toolchain whose `rustc` is found on `PATH`.
    ToolchainOnPath,
    /// The `lib` folders of all toolchains in this folder, which is rustup's.
    Toolchains(PathBuf),
    /// A file name that the dynamic linker looks up in the system's folders.
    SystemName(&'static str),
}

impl SearchPlace {
    /// The list [`super::library`] goes through: `KILN_LIBLLVM` alone if it is set, since who names a
    /// library means that one; otherwise the program's own folder, its
    /// `lib` folder and the `lib` folder beside it; the toolchain that built this crate; the
    /// toolchain on `PATH`; the other toolchains that rustup has; with the feature `system-llvm` the system's libraries.
    pub fn known() -> Vec<SearchPlace> {
        if let Some(named) = Environment::get().libllvm.clone() {
            return vec![SearchPlace::Path(named)];
        }
        let mut places = Vec::new();
        if let Ok(program) = env::current_exe()
            && let Some(folder) = program.parent()
        {
            places.push(SearchPlace::Folder(folder.to_path_buf()));
            places.push(SearchPlace::Folder(folder.join("lib")));
            places.extend(
                folder
                    .parent()
                    .map(|parent| SearchPlace::Folder(parent.join("lib"))),
            );
        }
        let built_with = env!("KILN_BUILD_TOOLCHAIN_LIB");
        if !built_with.is_empty() {
            places.push(SearchPlace::Folder(PathBuf::from(built_with)));
        }
        places.push(SearchPlace::ToolchainOnPath);
        let rustup = || Some(Environment::get().home.as_ref()?.join(".rustup"));
        let rustup = Environment::get().rustup_home.clone().or_else(rustup);
        places.extend(rustup.map(|rustup| SearchPlace::Toolchains(rustup.join("toolchains"))));
        if cfg!(feature = "system-llvm") {
            places.push(SearchPlace::SystemName("libLLVM-22.so"));
            places.push(SearchPlace::SystemName("libLLVM.so.22.1"));
            // Of Debian and Ubuntu, and of Fedora.
            for folder in ["/usr/lib/llvm-22/lib", "/usr/lib64/llvm22/lib64"] {
                places.push(SearchPlace::Folder(PathBuf::from(folder)));
            }
        }
        places
    }

    /// The paths to open for this place, best first, or the reason why there is none.
    pub(super) fn candidates(&self) -> Result<Vec<PathBuf>, String> {
        match self {
            SearchPlace::Path(path) if path.is_dir() => in_folder(path),
            SearchPlace::Path(path) if path.exists() => {
                Ok(vec![behind_script(path).unwrap_or_else(|| path.clone())])
            }
            SearchPlace::Path(_) => Err("there is no such file or folder".to_owned()),
            SearchPlace::Folder(folder) => in_folder(folder),
            SearchPlace::ToolchainOnPath => in_folder(&toolchain_on_path()?),
            SearchPlace::Toolchains(folder) => in_toolchains(folder),
            SearchPlace::SystemName(name) => Ok(vec![PathBuf::from(name)]),
        }
    }

    /// How error texts call the place.
    pub(super) fn describe(&self) -> String {
        match self {
            SearchPlace::Path(path) | SearchPlace::Folder(path) => path.display().to_string(),
            SearchPlace::ToolchainOnPath => "the toolchain of the `rustc` on PATH".to_owned(),
            SearchPlace::Toolchains(folder) => format!("the toolchains in {}", folder.display()),
            SearchPlace::SystemName(name) => format!("{name} (dynamic linker)"),
        }
    }
}

/// The file that a linker script of one line names (`INPUT(libLLVM.so.22.1-rust-1.95.0-stable)`): the Rust
/// toolchain's `libLLVM-22-rust-*.so` is one, which a linker reads and the system cannot open.
fn behind_script(path: &Path) -> Option<PathBuf> {
    const LONGEST: u64 = 1000;
    if fs::metadata(path).ok()?.len() > LONGEST {
        return None;
    }
    let text = fs::read_to_string(path).ok()?;
    let name = text.trim().strip_prefix("INPUT(")?.strip_suffix(')')?;
    Some(path.parent()?.join(name.trim()))
}

/// The files of all toolchains in a folder, in the order of these' names.
fn in_toolchains(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such folder".to_owned(),
        _ => error.to_string(),
    })?;
    let mut toolchains: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    toolchains.sort();
    let files = toolchains
        .iter()
        .filter_map(|toolchain| in_folder(&toolchain.join("lib")).ok());
    let files: Vec<PathBuf> = files.flatten().collect();
    match files.is_empty() {
        true => Err("no toolchain there has a file that is named like libLLVM 22".to_owned()),
        false => Ok(files),
    }
}

/// The files in `folder` that are named like libLLVM 22, best first.
fn in_folder(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such folder".to_owned(),
        _ => error.to_string(),
    })?;
    let mut ranked: Vec<(usize, PathBuf)> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            Some((rank(path.file_name()?)?, path))
        })
        .collect();
    if ranked.is_empty() {
        return Err("no file is named like libLLVM 22".to_owned());
    }
    ranked.sort();
    Ok(ranked.into_iter().map(|(_, path)| path).collect())
}

/// The order in which a file of this name is tried; `None` if it is not named like libLLVM 22.
///
/// The Rust toolchain's versioned name comes first: beside it lies `libLLVM-22-rust-*.so`, which
/// on Linux is a linker script of one line and cannot be opened.
fn rank(name: &OsStr) -> Option<usize> {
    let name = name.to_str()?;
    // With the minor version, whichever it is.
    if let Some(rest) = name.strip_prefix("libLLVM.so.22.") {
        let behind = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        return match behind {
            _ if behind.len() == rest.len() => None,
            "" => Some(2),
            _ => behind.starts_with("-rust-").then_some(0),
        };
    }
    match name {
        "libLLVM-22.so" => Some(3),
        "libLLVM-22.dylib" => Some(4),
        "libLLVM.dylib" => Some(5),
        _ => {
            let of_rust = name.starts_with("libLLVM-22-rust-") && name.ends_with(".so");
            of_rust.then_some(1)
        }
    }
}

/// The `lib` folder of the toolchain on `PATH`.
fn toolchain_on_path() -> Result<PathBuf, String> {
    let output = Command::new("rustc")
        .args(["--print", "sysroot"])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("`rustc` cannot be run: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "`rustc --print sysroot` failed ({})",
            output.status
        ));
    }
    let sysroot = String::from_utf8(output.stdout)
        .map_err(|_| "`rustc --print sysroot` gave a path that is not UTF-8".to_owned())?;
    Ok(Path::new(sysroot.trim()).join("lib"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_llvm_22_are_ranked() {
        let rank = |name: &str| rank(OsStr::new(name));
        assert_eq!(rank("libLLVM.so.22.1-rust-1.95.0-stable"), Some(0));
        assert_eq!(rank("libLLVM-22-rust-1.95.0-stable.so"), Some(1));
        assert_eq!(rank("libLLVM.so.22.1"), Some(2));
        assert_eq!(rank("libLLVM.so.22.12-rust-1.99.0-stable"), Some(0));
        assert_eq!(rank("libLLVM.so.22.2.1"), Some(2));
        assert_eq!(rank("libLLVM.so.22."), None);
        assert_eq!(rank("libLLVM.so.22.-rust-1.95.0-stable"), None);
        assert_eq!(rank("libLLVM.so.22.1.bak"), None);
        assert_eq!(rank("libLLVM-22.so"), Some(3));
        assert_eq!(rank("libLLVM-22-rust-1.95.0-stable.so.bak"), None);
        assert_eq!(rank("libLLVM.so.19.1"), None);
        assert_eq!(rank("librustc_driver.so"), None);
    }

    #[test]
    fn all_toolchains_are_looked_through() {
        let folder = env::temp_dir().join(format!("kiln-toolchains-{}", std::process::id()));
        let file = |toolchain: &str, name: &str| {
            let lib = folder.join(toolchain).join("lib");
            fs::create_dir_all(&lib).expect("a temporary folder");
            fs::write(lib.join(name), "").expect("a temporary file");
            lib.join(name)
        };
        file("nightly", "libLLVM.so.23.1-rust-1.99.0-nightly");
        let place = SearchPlace::Toolchains(folder.clone());
        assert!(place.candidates().is_err());
        let newer = file("1.96", "libLLVM.so.22.1-rust-1.96.0-stable");
        let older = file("1.95", "libLLVM.so.22.1-rust-1.95.0-stable");
        let found = place.candidates();
        fs::remove_dir_all(&folder).expect("it is there");
        assert_eq!(found, Ok(vec![older, newer]));
    }

    #[test]
    fn a_missing_folder_says_so() {
        let place = SearchPlace::Folder(PathBuf::from("/nonexistent/kiln"));
        assert_eq!(
            place.candidates(),
            Err("there is no such folder".to_owned())
        );
    }
}
