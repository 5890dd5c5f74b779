//! Tests that are files of IR (`tests/filetests`), which are read as the tests run: a new one compiles
//! nothing.
//!
//! A file is in the folder of its kind, says so in its first line (`; test run`), and has settings in the
//! comments before its module, each with a name: `; target: sm_90`. What it expects lies beside the line
//! that it is about. A test makes of a file the text that it should have, and fails if that is another one;
//! with `UPDATE_EXPECT=1` it writes it instead, and the difference is looked at before it is committed.

mod launch;
mod numbers;

use std::path::{Path, PathBuf};

use kiln::core::ir::{self, Module};

use crate::Outcome;

pub use launch::{Everywhere, OnDevice};

/// Where the files are, in a folder for each kind.
fn root() -> PathBuf {
    // A machine that has a bundle has no checkout.
    match std::env::var_os("KILN_FILETESTS") {
        Some(folder) => folder.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests"),
    }
}

/// A test.
#[derive(Clone, Debug)]
pub struct File {
    /// Where it is; none for one in no folder.
    path: Option<PathBuf>,
    /// What it holds.
    pub text: String,
}

impl File {
    /// The names of the folders of files.
    ///
    /// # Panics
    /// If they cannot be listed.
    pub fn folders() -> Vec<String> {
        let entries = std::fs::read_dir(root()).expect("the folder of file tests can be read");
        let folders = entries.map(|e| e.expect("an entry").path());
        let name = |path: PathBuf| path.file_name().map(|n| n.to_string_lossy().into_owned());
        folders.filter(|f| f.is_dir()).filter_map(name).collect()
    }

    /// The files of a kind, in order.
    ///
    /// # Panics
    /// If there is none, or one that says it is of another kind.
    pub fn all(kind: &str) -> Vec<File> {
        let folder = root().join(kind);
        let entries = std::fs::read_dir(&folder);
        let entries = entries.unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        let mut paths: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).collect();
        paths.retain(|path| path.extension().is_some_and(|e| e == "kir"));
        paths.sort();
        assert!(!paths.is_empty(), "no files in {}", folder.display());
        let read = |path: PathBuf| {
            let text = std::fs::read_to_string(&path).expect("the file can be read");
            let first = text.lines().next().unwrap_or_default();
            let of = path.display();
            assert_eq!(first, format!("; test {kind}"), "the first line of {of}");
            File {
                path: Some(path),
                text,
            }
        };
        paths.into_iter().map(read).collect()
    }

    /// One that is in no folder.
    pub fn of(text: &str) -> File {
        File {
            path: None,
            text: text.to_owned(),
        }
    }

    /// Its name in its folder.
    pub fn name(&self) -> String {
        let stem = self.path.as_ref().and_then(|path| path.file_stem());
        stem.unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The comments before the module, each with its name and what it says.
    pub fn settings(&self) -> impl Iterator<Item = (&str, &str)> {
        let comments = self.text.lines().map_while(|line| line.strip_prefix(';'));
        comments.filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            Some((name.trim(), value.trim()))
        })
    }

    /// A setting.
    pub fn setting(&self, name: &str) -> Option<&str> {
        let mut found = self.settings().filter(|(known, _)| *known == name);
        found.next().map(|(_, value)| value)
    }

    /// A setting that is numbers.
    ///
    /// # Errors
    /// A word that is no number.
    pub fn extents(&self, name: &str) -> Result<Option<[u32; 3]>, String> {
        let Some(words) = self.setting(name) else {
            return Ok(None);
        };
        let mut extents = [1; 3];
        for (extent, word) in extents.iter_mut().zip(words.split_whitespace()) {
            let number = word.parse();
            *extent = number.map_err(|_| format!("`{name}`: `{word}` is no number"))?;
        }
        Ok(Some(extents))
    }

    /// The module; places in it are lines of the file `here`.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn module(&self) -> Result<Module, String> {
        let module = ir::parse_file("here", &self.text, &kiln::stdlib::find);
        module.map_err(|e| format!("{}.kir:{e}", self.name()))
    }

    /// Compares the file with what it should be, or makes it so.
    ///
    /// # Errors
    /// The first difference.
    pub fn settle(&self, wanted: &str) -> Outcome {
        if self.text == wanted {
            return Ok(());
        }
        if let Some(path) = self.path.as_ref().filter(|_| self.is_rewritten()) {
            return Ok(std::fs::write(path, wanted)?);
        }
        let (name, difference) = (self.name(), self.difference(wanted));
        let help = "UPDATE_EXPECT=1 rewrites the file";
        Err(format!("{name}.kir, {difference}\n({help})\n\n{wanted}").into())
    }

    /// Whether what is expected is to be written, not compared.
    pub fn is_rewritten(&self) -> bool {
        let asked = std::env::var_os("UPDATE_EXPECT").is_some_and(|value| value == "1");
        asked && self.path.is_some()
    }

    /// The first difference from a text.
    fn difference(&self, wanted: &str) -> String {
        let (mut found, mut wanted) = (self.text.lines(), wanted.lines());
        for number in 1.. {
            let pair = (found.next(), wanted.next());
            if pair.0 != pair.1 || pair == (None, None) {
                let [found, wanted] = [pair.0, pair.1].map(|line| line.unwrap_or("(the end)"));
                return format!("line {number}:\n  {found}\nshould be\n  {wanted}");
            }
        }
        unreachable!("a text has an end")
    }
}
