//! evcxr, which compiles and runs the cells of Rust notebooks, installed from its crate.
//!
//! Its build takes minutes: rust-analyzer is in it. For the types of variables rust-analyzer reads the
//! sources of the standard library, a component of the toolchain that rustup adds.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::crates::Program;
use crate::error::{Error, Result};
use crate::workspace::{output, root, run};

const EVCXR: Program = Program {
    package: "evcxr_repl",
    version: "0.22.0",
    name: "evcxr",
    help: "evcxr is built once, from crates that cargo downloads: check the network and cargo's \
           configuration, then try again. `cargo xtask test --workspace` runs every test that needs no evcxr",
};

const SOURCES_HELP: &str = "evcxr reads the sources of the standard library. Check the network, or add them where there \
     is one: `rustup component add rust-src`";
const TOOLCHAIN_HELP: &str = "Install Rust with rustup";

/// Installs evcxr unless it is there, and says where it is.
pub(crate) fn setup() -> Result<PathBuf> {
    add_sources()?;
    EVCXR.install()
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

/// The folder in which the cells of some notebooks are compiled. Crates have the versions that the
/// workspace has them in: what it has downloaded is enough.
pub(crate) fn build_folder(of: &str) -> Result<PathBuf> {
    let folder = crate::workspace::target_folder()
        .join("kiln-notebooks")
        .join(of);
    fs::create_dir_all(folder.join("config")).map_err(Error::io("create", &folder))?;
    let lock = folder.join("Cargo.lock");
    fs::copy(root().join("Cargo.lock"), &lock).map_err(Error::io("write", &lock))?;
    Ok(folder)
}
