//! What a file becomes as a whole, in comments at its end.

use suite::Outcome;
use suite::files::File;

const BEGIN: &str = "; gives:\n";

/// Holds what a file gives, a module or an error, against what is behind `; gives:`.
pub(super) fn settle(file: &File, given: &str) -> Outcome {
    let before = file.text.split(BEGIN).next().unwrap_or_default();
    let mut wanted = before.to_owned() + BEGIN;
    for line in given.trim_end().lines() {
        wanted += format!("; {line}").trim_end();
        wanted += "\n";
    }
    file.settle(&wanted)
}
