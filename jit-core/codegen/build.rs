//! Build script of `kiln-codegen`.
//!
//! Two things are fixed when the crate is built: the table of LLVM-C forwarders, generated from
//! `src/llvm/llvm_symbols.txt`, and the `lib` folder of the Rust toolchain that builds the
//! crate, which is one of the places where libLLVM is looked for at run time. Nothing is linked.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const SYMBOLS: &str = "src/llvm/llvm_symbols.txt";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={SYMBOLS}");
    println!("cargo:rerun-if-env-changed=RUSTC");

    let list = fs::read_to_string(SYMBOLS).expect("src/llvm/llvm_symbols.txt is readable");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::write(out.join("llvm_forwarders.rs"), forwarders(&list)).expect("OUT_DIR is writable");

    // An empty value means "unknown"; the search then skips this place.
    let lib = toolchain_lib().unwrap_or_default();
    println!("cargo:rustc-env=KILN_BUILD_TOOLCHAIN_LIB={}", lib.display());
}

/// The invocation of `forwarders!` that defines one function and one table row per listed symbol.
fn forwarders(list: &str) -> String {
    let mut text = String::from("forwarders! {\n");
    let lines = list
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    for (index, line) in lines.enumerate() {
        let (needed, name) = match line.strip_prefix("? ") {
            Some(name) => (false, name),
            None => (true, line),
        };
        writeln!(text, "    {index} {name} {needed};").expect("writing to a string succeeds");
    }
    text.push_str("}\n");
    text
}

/// `<sysroot>/lib` of the compiler that cargo builds this crate with.
fn toolchain_lib() -> Option<PathBuf> {
    let rustc = env::var_os("RUSTC")?;
    let output = Command::new(rustc)
        .args(["--print", "sysroot"])
        .output()
        .ok()?;
    let sysroot = String::from_utf8(output.stdout).ok()?;
    let lib = Path::new(sysroot.trim()).join("lib");
    lib.is_dir().then_some(lib)
}
