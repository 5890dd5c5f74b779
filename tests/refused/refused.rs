//! What the macros refuse, and what they say: each file of `kernel` (`#[kernel]` and its kind) and of `offload` does not
//! compile, with the messages of the file beside it, nor does what the guide shows as refused, with the messages
//! that follow there. `UPDATE_EXPECT=1 cargo xtask test refusals` writes those anew.

#[path = "../../docs/guide/chapters.rs"]
#[allow(dead_code, reason = "cells and links are for the tests of the guide")]
mod chapters;
#[path = "../../docs/guide/shown.rs"]
mod shown;

use std::fs;
use std::path::Path;

use chapters::{Program, chapters, programs};
use shown::{FILE, rewrite, rewrites, with_file};

#[test]
fn refusals() {
    let tests = trybuild::TestCases::new();
    tests.compile_fail("kernel/*.rs");
    tests.compile_fail("offload/*.rs");
}

#[test]
fn refusals_of_the_guide() {
    // trybuild looks for rustc's words in a file beside each program.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guide-refused");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("cargo's folder is writable");
    let chapters = chapters();
    let programs = chapters.iter().flat_map(programs);
    let programs: Vec<Program> = programs.filter(|program| program.refused).collect();
    let path = |program: &Program| folder.join(format!("{}.rs", program.name));
    let tests = trybuild::TestCases::new();
    for program in &programs {
        let (path, shown) = (path(program), program.output.clone());
        let words = shown.expect("what rustc says follows what is refused");
        let words = words.replace(FILE, &path.to_string_lossy());
        fs::write(&path, &program.source).expect("cargo's folder is writable");
        fs::write(path.with_extension("stderr"), words).expect("cargo's folder is writable");
        tests.compile_fail(path);
    }
    // trybuild compares when it is dropped.
    drop(tests);
    for program in programs.iter().filter(|_| rewrites()) {
        let path = path(program).with_extension("stderr");
        let words = fs::read_to_string(path).expect("trybuild wrote it");
        rewrite(program, &with_file(&words, &format!("{}.rs", program.name)));
    }
}

/// What the macros name for themselves is nobody's business: not by the prefix of such names, and not by the numbers that
/// names of methods are.
#[test]
fn messages_have_no_names_of_the_macros_own() {
    let folder = std::fs::read_dir("kernel").expect("it is there");
    let paths = folder.map(|entry| entry.expect("it can be read").path());
    let messages = paths.filter(|path| path.extension().is_some_and(|kind| kind == "stderr"));
    let mut count = 0;
    for path in messages {
        let text = std::fs::read_to_string(&path).expect("it is a text");
        let is_number = |word: &str| word.len() > 12 && word.bytes().all(|b| b.is_ascii_digit());
        let number = text
            .split(|c: char| !c.is_alphanumeric())
            .find(|word| is_number(word));
        assert_eq!(number, None, "{}", path.display());
        assert!(
            !text.to_lowercase().contains("__kiln"),
            "{}",
            path.display()
        );
        count += 1;
    }
    assert!(count > 100, "{count}");
}
