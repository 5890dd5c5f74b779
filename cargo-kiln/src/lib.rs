//! Programs as folders that run where there is no Rust: what `cargo kiln bundle` does, and parts of Kiln's own
//! `cargo xtask bundle`.
//!
//! Kiln looks for libLLVM beside a program before it looks anywhere else, so a folder with both needs no script and no
//! variable:
//!
//! ```text
//! FOLDER/PROGRAM          a release build, stripped
//! FOLDER/libLLVM.so.22.*  the toolchain's, as far as a loader reads it
//! FOLDER/kernels          compiled ahead of time (`kiln::core::ahead`), if they are given
//! ```

mod loadable;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use serde_json::Value;

pub use loadable::loadable;

/// Why there is no folder.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The command line is not understood.
    #[error("{0}; give {USAGE}")]
    Usage(String),
    /// A program cannot be started.
    #[error("`{program}` cannot be started: {source}; see that it is installed and on PATH")]
    CannotStart {
        /// The program.
        program: String,
        /// What the system says.
        source: io::Error,
    },
    /// A program has failed, and has said why.
    #[error("`{program}` failed ({status}); see what it says above")]
    Failed {
        /// The program.
        program: String,
        /// How it ended.
        status: ExitStatus,
    },
    /// Cargo has printed what is no message of its.
    #[error(
        "what cargo printed is not understood: {0}; see that cargo is that of Rust 1.95 or newer"
    )]
    Messages(#[from] serde_json::Error),
    /// Nothing was built that could be put into the folder.
    #[error("nothing was built that is a program; name one by `--bin` or `--example`")]
    NoProgram,
    /// The toolchain has no libLLVM 22.
    #[error(
        "no libLLVM.so.22.* in {}; build with a toolchain that has it (`cargo +1.95 kiln bundle`), or leave it out with \
         `--no-llvm`", folder.display()
    )]
    NoLlvm {
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// The folder is there, and not one that this has made.
    #[error("{} is there and is no empty folder; name another one, or remove it", folder.display())]
    NotEmpty {
        /// The folder.
        folder: PathBuf,
    },
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// The result of what this crate does.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What `cargo kiln bundle` is given.
const USAGE: &str = "cargo kiln bundle --out FOLDER [--bin NAME | --example NAME].. [--kernels FOLDER] [--no-llvm] \
                     [-- OPTIONS OF CARGO BUILD]";

fn at(path: &Path) -> impl FnOnce(io::Error) -> Error + use<> {
    let path = path.to_owned();
    move |source| Error::File { path, source }
}

fn output(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output();
    match output {
        Ok(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Ok(output) => Err(Error::Failed {
            program,
            status: output.status,
        }),
        Err(source) => Err(Error::CannotStart { program, source }),
    }
}

/// A program that cargo has built.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Built {
    /// The target's name.
    pub name: String,
    /// What cargo says of the target.
    pub target: Value,
    /// Where the program is.
    pub path: PathBuf,
}

/// The programs of cargo's messages, one JSON value a line.
///
/// # Errors
/// A line that begins as a message and is none.
pub fn built(messages: &str) -> serde_json::Result<Vec<Built>> {
    let mut programs = Vec::new();
    for line in messages.lines().filter(|line| line.starts_with('{')) {
        let message: Value = serde_json::from_str(line)?;
        let (path, target) = (&message["executable"], &message["target"]);
        if let (Some(path), Some(name)) = (path.as_str(), target["name"].as_str()) {
            programs.push(Built {
                name: name.to_owned(),
                target: target.clone(),
                path: path.into(),
            });
        }
    }
    Ok(programs)
}

/// Copies a program without what only a debugger reads.
///
/// # Errors
/// A file that cannot be written; no `strip`, which comes with the C linker.
pub fn copy_stripped(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).map_err(at(from))?;
    output(Command::new("strip").arg(to)).map(drop)
}

/// The libLLVM of the toolchain that builds what is in a folder.
///
/// # Errors
/// [`Error::NoLlvm`]; no `rustc`.
pub fn toolchain_llvm(folder: &Path) -> Result<PathBuf> {
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    let sysroot = output(rustc.current_dir(folder).args(["--print", "sysroot"]))?;
    let folder = Path::new(sysroot.trim()).join("lib");
    let files = fs::read_dir(&folder).into_iter().flatten().flatten();
    let mut libraries: Vec<PathBuf> = files
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("libLLVM.so.22.")
        })
        .collect();
    libraries.sort();
    libraries.pop().ok_or(Error::NoLlvm { folder })
}

/// What a folder is made of.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Bundle {
    /// The folder.
    pub out: PathBuf,
    /// The options of `cargo build` that choose programs, and others of its.
    pub build: Vec<OsString>,
    /// A folder of kernels that were compiled ahead of time.
    pub kernels: Option<PathBuf>,
    /// Whether libLLVM is left out.
    pub no_llvm: bool,
}

impl Bundle {
    /// What a command line asks for, from behind `bundle` on.
    ///
    /// # Errors
    /// [`Error::Usage`].
    pub fn asked(args: impl IntoIterator<Item = OsString>) -> Result<Bundle> {
        let mut args = args.into_iter();
        let (mut bundle, mut out) = (Bundle::default(), None);
        while let Some(arg) = args.next() {
            let mut value = || {
                let value = args.next();
                value.ok_or_else(|| Error::Usage(format!("`{}` names nothing", arg.display())))
            };
            match arg.to_str() {
                Some("--out") => out = Some(PathBuf::from(value()?)),
                Some("--kernels") => bundle.kernels = Some(value()?.into()),
                Some("--no-llvm") => bundle.no_llvm = true,
                Some("--bin" | "--example") => {
                    let name = value()?;
                    bundle.build.extend([arg, name]);
                }
                Some("--") => bundle.build.extend(args.by_ref()),
                _ => return Err(Error::Usage(format!("`{}` is not known", arg.display()))),
            }
        }
        bundle.out = out.ok_or_else(|| Error::Usage("no folder is named".to_owned()))?;
        Ok(bundle)
    }

    /// Builds the programs of a folder's package for release, and makes the folder. Gives what is in it.
    ///
    /// # Errors
    /// What cargo says; a folder that is not empty; files that cannot be written.
    pub fn make(&self, package: &Path) -> Result<Vec<String>> {
        let library = match self.no_llvm {
            true => None,
            false => Some(toolchain_llvm(package)?),
        };
        fs::create_dir_all(&self.out).map_err(at(&self.out))?;
        if fs::read_dir(&self.out)
            .map_err(at(&self.out))?
            .next()
            .is_some()
        {
            let folder = self.out.clone();
            return Err(Error::NotEmpty { folder });
        }
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args([
            "build",
            "--release",
            "--message-format",
            "json-render-diagnostics",
        ]);
        let programs = built(&output(cargo.args(&self.build).current_dir(package))?)?;
        if programs.is_empty() {
            return Err(Error::NoProgram);
        }
        let mut names = Vec::new();
        for program in programs {
            copy_stripped(&program.path, &self.out.join(&program.name))?;
            names.push(program.name);
        }
        if let Some(kernels) = &self.kernels {
            copy_folder(kernels, &self.out.join("kernels"))?;
            names.push("kernels".to_owned());
        }
        if let Some(library) = library {
            let name = library.file_name().unwrap_or_default();
            let to = self.out.join(name);
            let bytes = fs::read(&library).map_err(at(&library))?;
            fs::write(&to, loadable(bytes)).map_err(at(&to))?;
            names.push(name.to_string_lossy().into_owned());
        }
        Ok(names)
    }
}

/// Copies the files of a folder that kernels are in: it has no folders.
fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir(to).map_err(at(to))?;
    for entry in fs::read_dir(from).map_err(at(from))? {
        let path = entry.map_err(at(from))?.path();
        if path.extension().is_some_and(|ending| ending == "kiln") {
            fs::copy(&path, to.join(path.file_name().unwrap_or_default())).map_err(at(&path))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(line: &str) -> Result<Bundle> {
        Bundle::asked(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn command_lines() {
        let bundle = asked("--bin a --out there --kernels k --example b --no-llvm -- --features x");
        let bundle = bundle.expect("it is understood");
        assert_eq!((bundle.out, bundle.no_llvm), (PathBuf::from("there"), true));
        assert_eq!(bundle.kernels, Some(PathBuf::from("k")));
        assert_eq!(
            bundle.build,
            ["--bin", "a", "--example", "b", "--features", "x"]
        );
        for wrong in ["", "--bin a", "--out", "--out there more", "--out x --bin"] {
            assert!(matches!(asked(wrong), Err(Error::Usage(_))), "{wrong}");
        }
    }

    #[test]
    fn programs_are_read_from_messages() {
        let messages = "{\"reason\":\"compiler-artifact\",\"executable\":null,\"target\":{}}\n\
            warning: x\n\
            {\"executable\":\"/t/a-1\",\"target\":{\"kind\":[\"bin\"],\"name\":\"a\"}}\n";
        let programs = built(messages).expect("they are messages");
        let [program] = &programs[..] else {
            panic!("{programs:?}")
        };
        assert_eq!((&*program.name, &*program.path), ("a", Path::new("/t/a-1")));
    }

    /// A package whose program says what it has beside it, as a folder that runs elsewhere.
    #[test]
    fn a_folder_of_a_program() {
        let folder = std::env::temp_dir().join(format!("cargo-kiln-{}", std::process::id()));
        let package = folder.join("package");
        fs::create_dir_all(package.join("src")).expect("a temporary folder");
        fs::create_dir_all(folder.join("k")).expect("a temporary folder");
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).expect("a file");
        write(
            "package/Cargo.toml",
            "[package]\nname = \"small\"\nedition = \"2024\"\n[workspace]\n",
        );
        write("package/src/main.rs", "fn main() { println!(\"here\") }\n");
        write("k/one.kiln", "kernel");
        write("k/one.lock", "");
        let target = folder.join("target");
        let bundle = Bundle {
            out: folder.join("out"),
            build: vec!["--target-dir".into(), target.into()],
            kernels: Some(folder.join("k")),
            no_llvm: true,
        };
        let names = bundle.make(&package).expect("it is built");
        assert_eq!(names, ["small", "kernels"]);
        let said = output(&mut Command::new(bundle.out.join("small"))).expect("it runs");
        assert_eq!(said, "here\n");
        let kernels = bundle.out.join("kernels");
        assert!(kernels.join("one.kiln").exists() && !kernels.join("one.lock").exists());
        let again = bundle.make(&package);
        assert!(matches!(again, Err(Error::NotEmpty { .. })), "{again:?}");
        fs::remove_dir_all(&folder).expect("it is there");
    }
}
