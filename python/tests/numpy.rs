//! The library as Python uses it, with NumPy. `cargo xtask test` installs that, and names the Python that has it in
//! `KILN_TEST_PYTHON`.

use std::path::Path;
use std::process::Command;

#[test]
fn arrays_of_numpy_are_taken_and_given() {
    let Some(python) = std::env::var_os("KILN_TEST_PYTHON") else {
        eprintln!("no KILN_TEST_PYTHON: `cargo xtask test` sets it");
        return;
    };
    let test = std::env::current_exe().expect("this program is a file");
    // Cargo puts what a test needs beside it.
    let library = test.with_file_name("libkiln_python.so");
    let output = Command::new(python)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("check.py"))
        .arg(library)
        .arg("numpy")
        .output();
    let output = output.expect("Python starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && text.contains("numpy 2"),
        "{text}{error}"
    );
}
