//! Tests that are files of IR, a folder for each kind; [`suite::files`] says what they have in common.
//!
//! | kind | the file expects |
//! |---|---|
//! | `text` | that printing it gives it again |
//! | `verify` | `; error: ..` at each line, of the verifier |
//! | `specialize` | behind `; gives:`, the module for the arguments of its settings, or the error |
//! | `hook` | behind `; gives:`, the legal module after the hooks of its settings, or the error |
//! | `legal` | `; error: ..` at each line, of what its target does not have |
//! | `llvm` | `; TARGET: text` below lines, what is then in LLVM's module |
//! | `ptx` | the same of PTX |
//! | `run` | what its launch gives, on every backend |
//!
//! A file is a test, `kir::llvm::atomics`. That no rule of the verifier, no operation and no extension
//! point is without a file are tests, too.

mod checks;
mod compiled;
mod coverage;
mod errors;
mod gives;
mod hooks;
mod specialized;
mod text;
mod wrong;

use libtest_mimic::Trial;
use suite::Outcome;
use suite::files::{Everywhere, File};

use crate::test;

/// What a kind of file is checked by.
type Check = fn(&File) -> Outcome;

/// The kinds, each with its check.
const KINDS: [(&str, Check); 8] = [
    ("text", text::check),
    ("verify", errors::check_verifier),
    ("specialize", specialized::check),
    ("hook", compiled::check_hooks),
    ("legal", errors::check_legality),
    ("llvm", compiled::check_llvm),
    ("ptx", compiled::check_ptx),
    ("run", |file| Everywhere::default().check(file)),
];

/// The tests.
pub fn tests() -> Vec<Trial> {
    let each_file = |(kind, check): (&'static str, Check)| {
        let named = move |file: File| {
            let name = format!("kir::{kind}::{}", file.name());
            test(name, move || check(&file))
        };
        File::all(kind).into_iter().map(named)
    };
    let mut tests: Vec<Trial> = KINDS.into_iter().flat_map(each_file).collect();
    tests.extend(coverage::tests());
    tests.extend(wrong::tests());
    tests
}
