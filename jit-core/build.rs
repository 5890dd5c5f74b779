//! Build script of `kiln-jit-core`.
//!
//! Code that is kept on disk is that of one build of Kiln: another version of the compiler may make other code of the
//! same kernel. What tells builds apart is fixed here: a digest of the sources of all crates that
//! decide code, as far as they lie beside this one, as in a checkout; crates of a registry lie alone, and their
//! sources never change under a version. The compiler of Rust and the target are in it, too, as code and runtime share
//! the layout of structures.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The folders with what decides code, from this crate's.
const SOURCES: [&str; 11] = [
    "Cargo.toml",
    "src",
    "codegen/src",
    "compiler/src",
    "description/src",
    "interp/src",
    "ir/src",
    "kernel-macro/src",
    "runtime/src",
    "../device-stdlib/src",
    "../hooks/src",
];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=RUSTC");
    // Two, of which the second goes on from the first: 64 bits are few.
    let mut digests = [DefaultHasher::new(), DefaultHasher::new()];
    1.hash(&mut digests[1]);
    let mut add = |part: &[u8]| digests.iter_mut().for_each(|digest| part.hash(digest));
    add(rustc().as_bytes());
    add(env::var("TARGET").unwrap_or_default().as_bytes());
    for source in SOURCES {
        let mut files = Vec::new();
        list(Path::new(source), &mut files);
        if files.is_empty() {
            continue;
        }
        println!("cargo:rerun-if-changed={source}");
        files.sort();
        for file in files {
            add(file.to_string_lossy().as_bytes());
            add(&fs::read(&file).unwrap_or_default());
        }
    }
    let [first, second] = digests.map(|digest| digest.finish());
    println!("cargo:rustc-env=KILN_BUILD={first:016x}{second:016x}");
}

/// The files of a place.
fn list(place: &Path, files: &mut Vec<PathBuf>) {
    if place.is_file() {
        files.push(place.to_owned());
    }
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    entries.for_each(|entry| list(&entry.path(), files));
}

/// What the compiler of Rust says that it is.
fn rustc() -> String {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("-vV").output();
    let text = output.map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&text).into_owned()
}
