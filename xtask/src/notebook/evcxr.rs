//! What runs notebooks: evcxr's kernel for Jupyter, installed from its crate, and Jupyter's client.
//!
//! evcxr's build takes minutes: rust-analyzer is in it. For the types of variables rust-analyzer reads
//! the sources of the standard library, a component of the toolchain that rustup adds.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::crates::Program;
use crate::error::{Error, Result};
use crate::wheels::Wheels;
use crate::workspace::{output, root, run};

const EVCXR: Program = Program {
    package: "evcxr_jupyter",
    version: "0.22.0",
    name: "evcxr_jupyter",
    features: &[],
    takes: "five to twenty-five minutes",
    // rust-analyzer reads the standard library at each start of a kernel: a minute if what reads is not optimized. What finds
    // types of what a cell has, and what is for editors, takes longer to optimize than it runs.
    config: &[
        "profile.dev.opt-level=1",
        "profile.dev.debug-assertions=false",
        "profile.dev.overflow-checks=false",
        "profile.dev.package.ra_ap_hir.opt-level=0",
        "profile.dev.package.ra_ap_hir_ty.opt-level=0",
        "profile.dev.package.ra_ap_ide.opt-level=0",
        "profile.dev.package.ra_ap_ide_assists.opt-level=0",
        "profile.dev.package.ra_ap_ide_completion.opt-level=0",
        "profile.dev.package.ra_ap_ide_db.opt-level=0",
        "profile.dev.package.ra_ap_ide_diagnostics.opt-level=0",
        "profile.dev.package.ra_ap_ide_ssr.opt-level=0",
        "profile.dev.package.clap_builder.opt-level=0",
    ],
    help: "evcxr is built once, from crates that cargo downloads: check the network and cargo's \
           configuration, then try again. `cargo xtask test --workspace` runs every test that needs no evcxr",
};

const SOURCES_HELP: &str = "evcxr reads the sources of the standard library. Check the network, or add them where there \
     is one: `rustup component add rust-src`";
const TOOLCHAIN_HELP: &str = "Install Rust with rustup";

const CLIENT: Wheels = Wheels {
    folder: "jupyter",
    what: "Jupyter's client",
    requirements: include_str!("../../requirements-jupyter.txt"),
    program: "python",
    help: "Check the network and pip's configuration; the wheels are pinned for Python 3.10 to 3.14 on Linux on x86-64 \
           and aarch64",
};

/// The workspace in which evcxr's package lies. cargo takes profiles from it alone: it is evcxr's, with
/// the `opt_level` of `notebook/evcxr.toml`.
const WORKSPACE: &str = r#"# Written by `cargo xtask notebook`.
[workspace]
members = ["cells", "keeps-versions"]
resolver = "3"

[profile.dev]
opt-level = 1
debug = false
strip = "debuginfo"
rpath = true
codegen-units = 16
incremental = true
"#;

/// The package that keeps the versions of Kiln's dependencies, up to what it depends on.
const PACKAGE: &str = r#"[package]
name = "keeps-versions"
version = "0.0.0"
edition = "2024"
[lib]
path = "lib.rs"
"#;

/// The programs that run notebooks.
pub(crate) struct Programs {
    /// evcxr's kernel for Jupyter.
    pub(crate) evcxr: PathBuf,
    /// The Python that has Jupyter's client.
    pub(crate) python: PathBuf,
}

/// Installs them unless they are there, and says where they are.
pub(crate) fn setup() -> Result<Programs> {
    add_sources()?;
    Ok(Programs {
        evcxr: EVCXR.install()?,
        python: CLIENT.install()?,
    })
}

/// Adds the sources of the standard library to the toolchain unless they are there.
fn add_sources() -> Result<()> {
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.current_dir(root()).args(["--print", "sysroot"]);
    let sysroot = output(&mut rustc, "asking rustc for its folder", TOOLCHAIN_HELP)?;
    let library = Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library");
    if library.is_dir() {
        return Ok(());
    }
    let mut rustup = Command::new("rustup");
    rustup.current_dir(root());
    rustup.args(["component", "add", "rust-src"]);
    run(&mut rustup, "adding rust-src", SOURCES_HELP)
}

/// Makes a folder ready for a kernel, and gives the part of it in which evcxr compiles cells.
///
/// What evcxr writes there is a package that at first depends on nothing. Alone, cargo would forget at once
/// which versions Kiln was compiled with, and ask the network for others at each start. So the package is
/// one of two in a workspace, and the other always needs Kiln, with the versions that Kiln's own workspace
/// has.
pub(crate) fn build_folder(folder: &Path) -> Result<PathBuf> {
    let keeps = folder.join("keeps-versions");
    for folder in [&keeps, &folder.join("cells")] {
        fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
    }
    let kiln = root().join("notebook").display().to_string();
    let package = format!("{PACKAGE}[dependencies]\nkiln-notebook.path = {kiln:?}\n");
    for (file, text) in [
        (folder.join("Cargo.toml"), WORKSPACE),
        (keeps.join("Cargo.toml"), &package),
        (keeps.join("lib.rs"), ""),
    ] {
        fs::write(&file, text).map_err(Error::io("write", &file))?;
    }
    let lock = folder.join("Cargo.lock");
    fs::copy(root().join("Cargo.lock"), &lock).map_err(Error::io("write", &lock))?;
    Ok(folder.join("cells"))
}

/// The versions of crates in a lock file, a line each, without those of its own workspace.
pub(crate) fn versions(folder: &Path) -> Result<BTreeSet<String>> {
    let path = folder.join("Cargo.lock");
    let text = fs::read_to_string(&path).map_err(Error::io("read", &path))?;
    let packages = text.split("[[package]]\n").skip(1);
    let foreign = packages.filter(|package| package.contains("\nsource = "));
    Ok(foreign
        .map(|package| package.lines().take(2).collect::<Vec<_>>().join(", "))
        .collect())
}
