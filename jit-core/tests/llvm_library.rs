//! Finding and opening libLLVM, as a program that depends on this crate sees it.
//!
//! These tests need the Rust toolchain this workspace pins and a linker, nothing else. None of
//! them sets environment variables but for processes of their own: the places are passed as a list. `kept` is about
//! what needs no libLLVM, since it was compiled before.

#[path = "llvm_library/ending.rs"]
mod ending;
#[path = "llvm_library/kept.rs"]
mod kept;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use kiln_jit_core::codegen::{LlvmLibraryError, SearchPlace, find_library, library};

#[test]
fn known_places_have_llvm_22() {
    let llvm = library().expect("the pinned toolchain has libLLVM 22");
    assert_eq!(llvm.version.0, 22);
    assert!(llvm.path.is_file(), "{}", llvm.path.display());
    assert!(std::ptr::eq(llvm, library().unwrap()));
}

#[test]
fn a_path_to_nowhere_is_an_error_that_names_it() {
    let error = find_library(&[SearchPlace::Path(PathBuf::from(
        "/nonexistent/kiln/libLLVM.so",
    ))]);
    let error = error.expect_err("there is no such file");
    assert!(matches!(error, LlvmLibraryError::NotFound { .. }));
    let text = error.to_string();
    assert!(
        text.contains("/nonexistent/kiln/libLLVM.so: there is no such file"),
        "{text}"
    );
    assert!(text.contains("KILN_LIBLLVM"), "{text}");
}

#[test]
fn a_file_that_is_no_library_is_passed_over_with_the_linker_s_reason() {
    let folder = std::env::temp_dir().join(format!("kiln-llvm-library-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    // Linux toolchains have a linker script of this name beside the library.
    let script = folder.join("libLLVM-22-rust-1.95.0-stable.so");
    fs::write(&script, "INPUT(libLLVM.so.22.1-rust-1.95.0-stable)").unwrap();
    let error =
        find_library(&[SearchPlace::Folder(folder.clone())]).expect_err("it is a text file");
    fs::remove_dir_all(&folder).unwrap();
    let LlvmLibraryError::NotFound { searched } = error else {
        panic!("{error}")
    };
    assert_eq!(searched.len(), 1);
    assert_eq!(searched[0].place, script.display().to_string());
    assert!(!searched[0].reason.is_empty());
}

#[test]
fn a_linker_script_that_is_named_leads_to_the_library() {
    let llvm = library().unwrap();
    let folder = std::env::temp_dir().join(format!("kiln-llvm-script-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let script = folder.join("libLLVM-22-rust-1.95.0-stable.so");
    fs::write(&script, format!("INPUT({})\n", llvm.path.display())).unwrap();
    let found = find_library(&[SearchPlace::Path(script)]);
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(found.as_ref(), Ok(llvm));
}

#[test]
fn a_place_without_a_library_does_not_end_the_search() {
    let llvm = library().unwrap();
    let other = SearchPlace::Path(llvm.path.with_file_name("no-such-file"));
    let found = find_library(&[other, SearchPlace::Path(llvm.path.clone())]).unwrap();
    assert_eq!(&found, llvm);
}

#[test]
fn libraries_of_another_version_or_without_functions_are_refused() {
    let folder = std::env::temp_dir().join(format!("kiln-llvm-stand-in-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let old = SearchPlace::Path(stand_in(&folder, "old", &version_function((19, 1, 7))));
    let empty = SearchPlace::Path(stand_in(&folder, "empty", &version_function((22, 1, 0))));
    let other = SearchPlace::Path(stand_in(&folder, "other", ""));
    let older = "#[unsafe(no_mangle)] pub extern \"C\" fn LLVMContextCreate() {}";
    let older = SearchPlace::Path(stand_in(&folder, "older", older));

    let error = find_library(&[other.clone(), old.clone(), older]).unwrap_err();
    let LlvmLibraryError::WrongVersion {
        version,
        ref searched,
        ..
    } = error
    else {
        panic!("{error}")
    };
    assert_eq!(version, (19, 1, 7));
    let reasons: Vec<&str> = searched.iter().map(|s| s.reason.as_str()).collect();
    assert_eq!(
        reasons,
        [
            "it does not export LLVMGetVersion, so it is no libLLVM",
            "it is LLVM 19.1.7",
            "it is an LLVM older than 16: it does not export LLVMGetVersion",
        ]
    );
    assert!(error.to_string().contains("needs LLVM 22"), "{error}");

    let error = find_library(&[old, empty, other]).unwrap_err();
    fs::remove_dir_all(&folder).unwrap();
    let LlvmLibraryError::MissingSymbol { ref symbol, .. } = error else {
        panic!("{error}")
    };
    assert!(symbol.starts_with("LLVM"), "{error}");
}

/// The source of `LLVMGetVersion`.
fn version_function((major, minor, patch): (u32, u32, u32)) -> String {
    format!(
        "#[unsafe(no_mangle)] pub extern \"C\" fn \
         LLVMGetVersion(a: &mut u32, b: &mut u32, c: &mut u32) {{ \
         (*a, *b, *c) = ({major}, {minor}, {patch}) }}"
    )
}

/// Builds a shared library that has of LLVM's functions only what `body` defines.
fn stand_in(folder: &Path, name: &str, body: &str) -> PathBuf {
    let source = folder.join(name).with_extension("rs");
    let library = folder.join(name).with_extension("so");
    fs::write(&source, body).unwrap();
    let status = Command::new("rustc")
        .args([
            "--edition=2024",
            "--crate-type=cdylib",
            "-Cpanic=abort",
            "-o",
        ])
        .args([&library, &source])
        .status()
        .expect("rustc is on PATH where cargo test runs");
    assert!(status.success());
    library
}

#[test]
fn an_empty_list_of_places_is_an_error() {
    assert_eq!(
        find_library(&[]),
        Err(LlvmLibraryError::NotFound {
            searched: Vec::new()
        })
    );
}
