//! Two libraries of one program that each define a type of one name and path, with another layout: what
//! was compiled for the one is not taken for the other.
//!
//! They share Kiln, as the cells of a notebook do, and plug-ins. Cargo builds no two libraries of one name,
//! so the test calls rustc, for the program, too, which is linked to the library of this package, as Cargo
//! has built it for the test: with the standard library in it.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder of this run of the test, which goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        let name = format!("two-libraries-{}", std::process::id());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&folder).expect("a folder can be made");
        Folder(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left is in the folder for what is temporary.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn rustc() -> Command {
    Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
}

/// A path that rustc prints.
fn printed(what: &str) -> PathBuf {
    let output = rustc().args(["--print", what]).output();
    let output = output.expect("rustc can be started").stdout;
    let text = String::from_utf8(output).expect("a path");
    text.trim().into()
}

/// A root for rustc without the shared form of the standard library, which it would link beside the one
/// that is in Kiln's library.
fn make_sysroot(folder: &Folder) {
    let (root, libraries) = (printed("sysroot"), printed("target-libdir"));
    let inside = libraries.strip_prefix(root).expect("it is in the root");
    let own = folder.0.join("sysroot").join(inside);
    std::fs::create_dir_all(&own).expect("a folder can be made");
    for entry in std::fs::read_dir(libraries).expect("the root has libraries") {
        let path = entry.expect("its entries can be read").path();
        let is_static = path
            .extension()
            .is_some_and(|e| e == "rlib" || e == "rmeta");
        if let Some(name) = path.file_name().filter(|_| is_static) {
            symlink(&path, own.join(name)).expect("a link can be made");
        }
    }
}

/// The folder that the test and this package's library are in.
fn built() -> PathBuf {
    let test = std::env::current_exe().expect("the test has a path");
    test.parent().expect("it is in a folder").to_owned()
}

/// Compiles a file of `two_libraries`.
fn compile(file: &str, folder: &Folder, name: &str, args: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/two_libraries");
    let (output, built) = (folder.0.join(name), built());
    let kiln = built.join("libkiln_notebook.so");
    let mut rustc = rustc();
    rustc
        .args(["--edition=2024", "--check-cfg=cfg(wide)", "-Dwarnings"])
        .args(args)
        .arg("--sysroot")
        .arg(folder.0.join("sysroot"))
        .arg(format!("--extern=kiln={}", kiln.display()))
        .arg(format!("-Ldependency={}", built.display()))
        .arg("-o")
        .args([output.clone(), source.join(file)]);
    let result = rustc.output().expect("rustc can be started");
    let text = String::from_utf8_lossy(&result.stderr);
    assert!(result.status.success(), "{file}: {text}");
    output
}

#[test]
fn types_of_one_name_in_two_libraries_are_two() {
    let folder = Folder::new();
    make_sysroot(&folder);
    // One name and no other metadata: the types of both have one `TypeId`.
    let library = ["--crate-name=library", "--crate-type=dylib"];
    let program = compile("program.rs", &folder, "program", &[]);
    let narrow = compile("library.rs", &folder, "narrow.so", &library);
    let args = [&library[..], &["--cfg=wide"]].concat();
    let wide = compile("library.rs", &folder, "wide.so", &args);
    let result = Command::new(program)
        .args([narrow, wide])
        .env("LD_LIBRARY_PATH", built())
        .output()
        .expect("the program starts");
    let text = String::from_utf8_lossy(&result.stderr);
    assert!(result.status.success(), "{text}");
    // A kernel and an expression, for each of the two types.
    let text = String::from_utf8_lossy(&result.stdout);
    assert_eq!(text, "4 compiles\n4 compiles\n");
}
