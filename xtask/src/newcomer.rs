//! `cargo xtask newcomer`: the way of whoever meets Kiln in its documents, walked from the first step on.
//!
//! A crate that `cargo new` makes, outside of the workspace and of the repository, gets the lines that README
//! has for `Cargo.toml`. Then README's programs and those of the guide's chapter on hooks become its
//! `src/main.rs`, one after the other, as they stand, and have to print what the document shows; README's first
//! program with a mistake in it has to be refused with the words beside this file, which `UPDATE_EXPECT=1`
//! writes anew. All is taken from the documents, so that one that goes wrong fails.
//!
//! One thing is another than for a newcomer: the repository that README names is this folder, by a
//! `[patch]` on cargo's command line, and nothing is asked of a network.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Instant;

use crate::chapters::{Chapter, Program, blocks_of, programs};
use crate::error::{Error, Result};
use crate::tests::{Totals, rewrites_snapshots};
use crate::workspace::{cannot_start, cargo, output, root, target_folder};

/// Where README has it that Kiln is.
const REPOSITORY: &str = "https://github.com/kiln-jit/kiln";

/// The name of the crate.
const NAME: &str = "app";

/// The documents whose programs are typed in. `docs/guide` runs those of all chapters, inside the workspace.
const README: &str = "README.md";
const CHAPTER: &str = "docs/guide/src/hooks.md";

/// What chooses how much is known of a program where it stops.
const DEBUG: &str = "CARGO_PROFILE_DEV_DEBUG";

const CARGO_HELP: &str = "Install Rust with rustup";

/// What README's second program, which is no whole one, leaves to its reader.
const AROUND_FRAGMENT: [&str; 2] = [
    "use kiln::prelude::*;

#[device_fn]
fn gelu(v: f32) -> f32 {
    0.5 * v * (1.0 + (0.8 * (v + 0.044 * v * v * v)).tanh())
}

fn main() -> kiln::Result<()> {
    let jit = Jit::new()?;
    let arrays = Arrays::new(&jit);
    let (x, y) = (arrays.vector(vec![1.0f32, 2.0])?, arrays.vector(vec![0.0, 1.0])?);
",
    "    assert!(norm > 0.0);\n    Ok(())\n}\n",
];

/// A mistake of those who begin, as what changes in README's first program.
struct Mistake {
    /// What the file with rustc's words is called.
    name: &'static str,
    /// What stands in the program.
    right: &'static str,
    /// What is written in its place.
    wrong: &'static str,
}

const MISTAKES: [Mistake; 4] = [
    Mistake {
        name: "writes_what_is_read",
        right: "y: &mut [T]",
        wrong: "y: &[T]",
    },
    Mistake {
        name: "allocates",
        right: "    if i < y.len() {",
        wrong: "    let mut sums = vec![0.0; 4];\n    if i < y.len() {",
    },
    Mistake {
        name: "iterates",
        right: "y[i] = a * x[i] + y[i];",
        wrong: "y[i] = a * x.iter().cycle().last().unwrap();",
    },
    Mistake {
        name: "called_like_a_function",
        right: "jit.launch(&saxpy, grid_for(1 << 20, 256), 256, args!(3.0f32, &x, &mut y))?;",
        wrong: "saxpy(3.0, &x, &mut y);",
    },
];

/// What is tried, and what has to come of it.
struct Trial {
    what: String,
    program: String,
    expected: Expected,
}

enum Expected {
    /// It runs and prints this.
    Prints(String),
    /// It is refused with the words of this file.
    Refused(PathBuf),
}

/// Walks the way, and tells how many of its steps went as the documents have it.
///
/// # Errors
/// Cargo or a file that cannot be used.
pub(crate) fn run() -> Result<Totals> {
    let readme = document(README)?;
    let newcomer = Newcomer::new(&readme)?;
    let (mut passed, mut failed) = (0, 0);
    for trial in trials(&readme)? {
        let started = Instant::now();
        let problem = newcomer.tries(&trial)?;
        let result = if problem.is_none() { "ok" } else { "FAILED" };
        let seconds = started.elapsed().as_secs_f32();
        println!("newcomer {} ... {result} ({seconds:.1} s)", trial.what);
        match problem {
            None => passed += 1,
            Some(problem) => {
                eprintln!("{problem}");
                failed += 1;
            }
        }
    }
    Ok(Totals { passed, failed })
}

/// A document of the repository.
fn document(file: &str) -> Result<Chapter> {
    let path = root().join(file);
    let text = fs::read_to_string(&path).map_err(Error::io("read", path))?;
    let name = file.trim_end_matches(".md").to_owned();
    Ok(Chapter { name, text })
}

/// All that is tried, in the order of the documents.
fn trials(readme: &Chapter) -> Result<Vec<Trial>> {
    let [first, fragment] =
        <[Program; 2]>::try_from(programs(readme)).map_err(|_| Error::Document {
            what: "README.md has not two programs, a whole one and lines of one".to_owned(),
        })?;
    let mut trials = vec![Trial {
        what: "README's first program".to_owned(),
        program: first.source.clone(),
        expected: Expected::Prints(first.output.unwrap_or_default()),
    }];
    for mistake in &MISTAKES {
        trials.push(Trial {
            what: format!("mistake {}", mistake.name),
            program: mistake.made_in(&first.source)?,
            expected: Expected::Refused(mistake.words()),
        });
    }
    let [before, after] = AROUND_FRAGMENT;
    trials.push(Trial {
        what: "README's lines on arrays".to_owned(),
        program: format!("{before}{}{after}", fragment.source),
        expected: Expected::Prints(String::new()),
    });
    let typed_in = programs(&document(CHAPTER)?).into_iter();
    trials.extend(typed_in.map(|program| Trial {
        what: format!("{} as it stands", program.name),
        program: program.source,
        expected: Expected::Prints(program.output.unwrap_or_default()),
    }));
    Ok(trials)
}

impl Mistake {
    fn made_in(&self, program: &str) -> Result<String> {
        match program.contains(self.right) {
            true => Ok(program.replacen(self.right, self.wrong, 1)),
            false => Err(Error::Document {
                what: format!(
                    "README's first program has no `{}`, in which `{}` of xtask/src/newcomer.rs is a mistake",
                    self.right, self.name
                ),
            }),
        }
    }

    /// The file with what rustc says of it.
    fn words(&self) -> PathBuf {
        let file = format!("{}.stderr", self.name);
        root().join("xtask/src/newcomer").join(file)
    }
}

/// The newcomer's crate, which goes with its folder when it is dropped.
struct Newcomer {
    folder: PathBuf,
}

impl Newcomer {
    /// `cargo new`, then README's lines in its `Cargo.toml`.
    fn new(readme: &Chapter) -> Result<Newcomer> {
        let parent = std::env::temp_dir().join(format!("kiln-newcomer-{}", std::process::id()));
        fs::create_dir_all(&parent).map_err(Error::io("create", &parent))?;
        let newcomer = Newcomer { folder: parent };
        let mut new = cargo();
        new.args(["new", "--quiet", "--vcs", "none", NAME]);
        new.current_dir(&newcomer.folder);
        output(&mut new, "`cargo new`", CARGO_HELP)?;

        let path = newcomer.file("Cargo.toml");
        let made = fs::read_to_string(&path).map_err(Error::io("read", &path))?;
        write(&path, &with_dependencies(&made, readme)?)?;
        let versions = root().join("Cargo.lock");
        let versions = fs::read_to_string(&versions).map_err(Error::io("read", &versions))?;
        write(&newcomer.file("Cargo.lock"), &locked(&versions))?;
        Ok(newcomer)
    }

    /// A file of the crate.
    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(NAME).join(name)
    }

    /// What is wrong with what comes of a program, if something is.
    fn tries(&self, trial: &Trial) -> Result<Option<String>> {
        write(&self.file("src/main.rs"), &trial.program)?;
        let (succeeds, said, expected) = match &trial.expected {
            Expected::Prints(printed) => {
                let run = self.cargo("run")?;
                (run.status.success(), text_of(&run), printed.clone())
            }
            Expected::Refused(words) => {
                let build = self.cargo("build")?;
                let said = for_everybody(&text_of(&build), &self.folder);
                if rewrites_snapshots() {
                    write(words, &said)?;
                }
                let expected = fs::read_to_string(words).unwrap_or_default();
                (!build.status.success(), said, expected)
            }
        };
        Ok(match succeeds && said == expected {
            true => None,
            false => Some(format!("== it says\n{said}== instead of\n{expected}")),
        })
    }

    /// Runs cargo in the crate. What it builds of Kiln is what `tests/outside` needs, too, and is shared with it.
    fn cargo(&self, command: &str) -> Result<Output> {
        let mut cargo = cargo();
        cargo.args([command, "--quiet", "--offline", "--color", "never"]);
        let here = format!("patch.{REPOSITORY:?}.kiln-jit.path={:?}", root());
        cargo.args(["--config", &here]).arg("--target-dir");
        cargo.arg(target_folder()).current_dir(self.file(""));
        // As the manifest of `tests/outside` has it, unless somebody has chosen for all: with another choice all of Kiln
        // would be compiled once more.
        if std::env::var_os(DEBUG).is_none() {
            cargo.env(DEBUG, "line-tables-only");
        }
        let output = cargo.stdin(Stdio::null()).output();
        output.map_err(|source| cannot_start(&cargo, source, CARGO_HELP))
    }
}

impl Drop for Newcomer {
    fn drop(&mut self) {
        // What is left behind in a folder for temporary files does no harm.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// What `cargo new` has written, with README's lines where they belong.
fn with_dependencies(made: &str, readme: &Chapter) -> Result<String> {
    let lines = blocks_of(readme, "toml").into_iter().next();
    match (made.split_once("[dependencies]\n"), lines) {
        (Some((package, "")), Some((_, lines))) => Ok(format!("{package}{lines}")),
        (_, None) => Err(Error::Document {
            what: "README.md has no lines for Cargo.toml".to_owned(),
        }),
        (_, Some(_)) => Err(Error::Document {
            what: format!("`cargo new` makes another Cargo.toml than it did:\n{made}"),
        }),
    }
}

/// The versions of the workspace, and the crate with Kiln among its dependencies: what is locked, cargo does
/// not ask the repository for.
fn locked(versions: &str) -> String {
    format!(
        "{versions}\n[[package]]\nname = {NAME:?}\nversion = \"0.1.0\"\ndependencies = [\"kiln-jit\"]\n"
    )
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).map_err(Error::io("write", path))
}

/// What a reader sees on the terminal.
fn text_of(output: &Output) -> String {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

/// rustc's words without the folders of one machine.
fn for_everybody(words: &str, folder: &Path) -> String {
    let words = words.replace(&*root().to_string_lossy(), "$KILN");
    words.replace(&*folder.to_string_lossy(), "$FOLDER")
}

#[cfg(test)]
mod check {
    use super::*;
    use crate::wheels::entries;

    fn chapter(text: &str) -> Chapter {
        let (name, text) = ("README".to_owned(), text.to_owned());
        Chapter { name, text }
    }

    #[test]
    fn dependencies_are_those_of_the_document() {
        let made = "[package]\nname = \"app\"\n\n[dependencies]\n";
        let lines = "[dependencies]\nkiln = \"1\"\n\n[profile.dev]\nopt-level = 1\n";
        let whole = with_dependencies(made, &chapter(&format!("Lines:\n```toml\n{lines}```\n")));
        let expected = format!("[package]\nname = \"app\"\n\n{lines}");
        assert_eq!(whole.expect("both are there"), expected);
        assert!(with_dependencies(made, &chapter("No lines.")).is_err());
        let other = format!("{made}x = \"1\"\n");
        assert!(with_dependencies(&other, &chapter("```toml\n```\n")).is_err());
    }

    #[test]
    fn documents_without_what_is_tried_are_errors() {
        assert!(trials(&chapter("```rust\nfn main() {}\n```\n")).is_err());
        let there = document(README).and_then(|readme| trials(&readme));
        assert!(there.expect("README has it").len() > MISTAKES.len() + 2);
        let [first, ..] = &MISTAKES;
        assert!(first.made_in(first.right).is_ok());
        assert!(first.made_in("fn main() {}").is_err());
    }

    #[test]
    fn every_mistake_has_its_words_and_no_words_are_left_over() {
        let mut files: Vec<PathBuf> = entries(&root().join("xtask/src/newcomer")).collect();
        let mut words: Vec<PathBuf> = MISTAKES.iter().map(Mistake::words).collect();
        files.sort();
        words.sort();
        assert_eq!(files, words);
    }
}
