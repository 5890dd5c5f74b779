//! `cargo xtask guide`: the guide of `docs/guide` as a book, under `target/guide`.
//!
//! mdBook is built once from crates.io and kept beside the other tools. It ends with success whatever it
//! warns of, so its output is read.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::crates::Program;
use crate::error::{Error, Result};
use crate::wheels::entries;
use crate::workspace::{cannot_start, root, target_folder};

const INSTALL_HELP: &str = "Check the network and cargo's configuration, then try again";

const MDBOOK: Program = Program {
    package: "mdbook",
    version: "0.5.4",
    name: "mdbook",
    features: &["search"],
    takes: "one to five minutes",
    config: &[],
    help: INSTALL_HELP,
};

/// Builds the book and returns its folder.
///
/// # Errors
/// mdBook cannot be installed, fails, or warns of something in the guide.
pub(crate) fn build() -> Result<PathBuf> {
    let book = target_folder().join("guide");
    let mut command = Command::new(MDBOOK.install()?);
    command.arg("build").arg(root().join("docs/guide"));
    command.arg("--dest-dir").arg(&book);
    // These choose how much mdBook prints.
    command.env_remove("RUST_LOG").env("MDBOOK_LOG", "info");
    command.stdin(Stdio::null()).stdout(Stdio::inherit());
    let output = command.output();
    let output = output.map_err(|source| cannot_start(&command, source, INSTALL_HELP))?;
    let printed = String::from_utf8_lossy(&output.stderr);
    eprint!("{printed}");
    match (output.status.success(), warnings(&printed)) {
        (true, 0) if !has_search(&book) => Err(Error::MissingFile {
            file: "searchindex",
            folder: book,
        }),
        (true, 0) => Ok(book),
        (true, warnings) => Err(Error::GuideWarns { warnings }),
        (false, _) => Err(Error::Failed {
            what: "building the guide".to_owned(),
            status: output.status,
            help: "See its output above",
        }),
    }
}

/// Whether the book can be searched, which mdBook leaves out without a word if it is built without it.
fn has_search(book: &Path) -> bool {
    entries(book).any(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("searchindex")
    })
}

/// The number of lines of mdBook's output that warn or report an error.
fn warnings(printed: &str) -> usize {
    let levels = printed
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    levels
        .filter(|level| ["WARN", "ERROR"].contains(level))
        .count()
}

#[cfg(test)]
mod check {
    use super::*;

    #[test]
    fn warnings_are_counted() {
        let printed = " INFO mdbook_driver::mdbook: Book building has started
ERROR mdbook_driver::builtin_preprocessors::links: Error updating
 WARN mdbook_html::html::tree: unclosed HTML tag `<b>` found in `a.md` while exiting Paragraph
HTML tags must be closed before exiting a markdown element.
 INFO Running the html backend: no WARN
";
        assert_eq!(warnings(printed), 2);
        assert_eq!(warnings(""), 0);
    }
}
