//! `cargo xtask notebook`: runs notebooks as Jupyter does, and sees what Jupyter reports as ok.
//!
//! Each code cell of a notebook is given to evcxr's kernel, in order, and must print what the notebook
//! keeps as its outputs, no more and no less. To Jupyter a panic in a cell and an error at `?` are text on
//! standard error, so here any such text is a failure that the notebook does not expect. A cell that
//! shows an error is tagged `raises-exception`. `UPDATE_EXPECT=1` keeps what was printed as the
//! outputs.
//!
//! Before the notebooks, cells with planted mistakes are run, each of which must be seen, and kernels are
//! started, restarted and run beside each other, for which no crate may be compiled. `--prepare` makes
//! the same kernel one of the user's Jupyter.

mod compiled;
mod document;
mod evcxr;
mod kernel;
mod planted;
mod prepare;
mod session;
mod starts;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::error::{Error, Result};
use crate::tests::Totals;
use crate::wheels::entries;
use crate::workspace::root;
use document::{Cell, Document, Outputs};
use evcxr::Programs;
use kernel::Kernel;
pub(crate) use prepare::prepare;
use session::{Outcome, Session};

/// Where the project's notebooks are.
const FOLDER: &str = "notebook";

/// Why a cell is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Problem {
    /// It does not compile.
    Refused(String),
    /// It panicked.
    Panicked(String),
    /// An error was passed on by `?`, or something else printed to standard error.
    Error(String),
    /// It was to show an error.
    NoError,
    /// It printed something else.
    Printed { expected: String, found: String },
    /// The process that runs the cells died.
    Crashed(String),
    /// The kernel ended.
    Ended(String),
    /// Something was compiled that was there.
    Compiled {
        when: &'static str,
        crates: Vec<String>,
    },
    /// It was planted, and the runner says something else of it.
    Unseen { code: &'static str, found: String },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Refused(text) => write!(f, "it does not compile\n{text}"),
            Problem::Panicked(text) => write!(f, "it panicked\n{text}"),
            Problem::Error(text) => write!(
                f,
                "an error at `?`, or something else on standard error\n{text}"
            ),
            Problem::NoError => write!(f, "it is tagged `raises-exception` and there was no error"),
            Problem::Printed { expected, found } => write!(
                f,
                "it printed\n{found}\ninstead of\n{expected}\n`UPDATE_EXPECT=1 cargo xtask notebook` \
                 keeps the new text"
            ),
            Problem::Crashed(text) => write!(f, "the process died\n{text}"),
            Problem::Ended(text) => write!(f, "the kernel ended\n{text}"),
            Problem::Compiled { when, crates } => {
                let crates = crates.join(", ");
                write!(f, "{when} compiled what should have been there: {crates}")
            }
            Problem::Unseen { code, found } => {
                write!(
                    f,
                    "the runner does not see what `{code}` is; it says: {found}"
                )
            }
        }
    }
}

/// Runs the planted mistakes, then these notebooks, or all of the project's; tells how many of all these
/// ran as they should.
///
/// # Errors
/// evcxr cannot be installed, or a notebook cannot be read. What is wrong with cells is printed and
/// counted.
pub(crate) fn run(files: &[String]) -> Result<Totals> {
    let programs = evcxr::setup()?;
    let mut files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
    if files.is_empty() {
        files.extend(
            entries(&root().join(FOLDER)).filter(|p| p.extension().is_some_and(|e| e == "ipynb")),
        );
        files.sort();
    }
    let mut ran = Totals::default();
    let mut count = |name: &str, problems: Vec<(usize, Problem)>, started: Instant| {
        let result = if problems.is_empty() { "ok" } else { "FAILED" };
        let seconds = started.elapsed().as_secs_f32();
        println!("notebook {name} ... {result} ({seconds:.1} s)");
        for (index, problem) in &problems {
            println!("cell {index} of {name}: {problem}\n");
        }
        match problems.is_empty() {
            true => ran.passed += 1,
            false => ran.failed += 1,
        }
    };
    let started = Instant::now();
    count("with planted mistakes", planted::run(&programs)?, started);
    let started = Instant::now();
    prepare::compile(&programs)?;
    count("folder prepared", Vec::new(), started);
    let started = Instant::now();
    count(
        "started, restarted, two at once",
        starts::run(&programs)?,
        started,
    );
    for file in &files {
        let started = Instant::now();
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        count(&name, notebook(&programs, file)?, started);
    }
    Ok(ran)
}

/// Runs a notebook and tells what is wrong with it, by cell.
fn notebook(programs: &Programs, file: &Path) -> Result<Vec<(usize, Problem)>> {
    let update = std::env::var_os("UPDATE_EXPECT").is_some_and(|value| value == "1");
    let mut document = Document::read(file)?;
    let cells = document.cells()?;
    let folder = fs::canonicalize(file).map_err(Error::io("find", file))?;
    let folder = folder.parent().unwrap_or(root());
    let kernel = Kernel::of_people(&programs.evcxr);
    let mut session = Session::start(programs, &kernel, folder, "notebook")?;
    let mut problems = Vec::new();
    for cell in &cells {
        let outcome = session.run(&cell.code);
        match &outcome {
            Outcome::Ran(outputs) if update && may_be_kept(cell, outputs) => {
                if problem(cell, &outcome).is_some() {
                    document.set_outputs(cell.index, outputs);
                }
            }
            _ => problems.extend(problem(cell, &outcome).map(|problem| (cell.index, problem))),
        }
        if matches!(outcome, Outcome::Ended(_)) {
            break;
        }
    }
    if update {
        document.write()?;
    }
    Ok(problems)
}

/// Whether what a cell printed can be its outputs: an error only if it is there to show one.
fn may_be_kept(cell: &Cell, outputs: &Outputs) -> bool {
    let shows_error = !outputs.err.is_empty() || outputs.refused.is_some();
    cell.fails == shows_error && !has_panicked(&outputs.err)
}

/// What is wrong with a cell, if anything.
fn problem(cell: &Cell, outcome: &Outcome) -> Option<Problem> {
    let expected = &cell.outputs;
    let outputs = match outcome {
        Outcome::Ran(outputs) => outputs,
        Outcome::Crashed(text) => return Some(Problem::Crashed(text.clone())),
        Outcome::Ended(text) => return Some(Problem::Ended(text.clone())),
    };
    // The text of a panic has addresses and the folders of one machine: none is ever expected.
    if has_panicked(&outputs.err) {
        return Some(Problem::Panicked(outputs.err.clone()));
    }
    match (&expected.refused, &outputs.refused) {
        (None, Some(text)) => return Some(Problem::Refused(text.clone())),
        (Some(_), None) => return Some(Problem::NoError),
        (Some(expected), Some(found)) => return differs(expected, found),
        (None, None) => {}
    }
    match (expected.err.is_empty(), outputs.err.is_empty()) {
        (true, false) => Some(Problem::Error(outputs.err.clone())),
        (false, true) => Some(Problem::NoError),
        _ => differs(&expected.out, &outputs.out).or_else(|| differs(&expected.err, &outputs.err)),
    }
}

/// Rust's own words for a panic. A cell that prints them itself is taken for one that panicked.
fn has_panicked(err: &str) -> bool {
    err.contains("panicked at ")
}

fn differs(expected: &str, found: &str) -> Option<Problem> {
    let lines = |text: &str| -> Vec<String> {
        let lines = text.trim_end().lines();
        lines.map(|line| without_line(line.trim_end())).collect()
    };
    (lines(expected) != lines(found)).then(|| Problem::Printed {
        expected: expected.to_owned(),
        found: found.to_owned(),
    })
}

/// The text with no line numbers of the file that evcxr makes of all cells, which has the cells' items in
/// an order that changes from run to run, and no numbers of cells, which count those that ran.
fn without_line(text: &str) -> String {
    ["src/lib.rs:", "command_"]
        .iter()
        .fold(text.to_owned(), |text, before| {
            without_number(&text, before)
        })
}

/// The text without the digits that come after some words.
fn without_number(text: &str, before: &str) -> String {
    let mut parts = text.split(before);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let digits = part.trim_start_matches(|c: char| c.is_ascii_digit());
        text + before + digits
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outputs(out: &str, err: &str, refused: Option<&str>) -> Outputs {
        Outputs {
            out: out.to_owned(),
            err: err.to_owned(),
            refused: refused.map(str::to_owned),
        }
    }

    fn judge(expected: Outputs, found: Outputs) -> Option<Problem> {
        let fails = !expected.err.is_empty() || expected.refused.is_some();
        let cell = Cell {
            index: 0,
            code: String::new(),
            fails,
            outputs: expected,
        };
        problem(&cell, &Outcome::Ran(found))
    }

    #[test]
    fn equal_output_is_right_whatever_ends_it() {
        assert_eq!(
            judge(outputs("1\n", "", None), outputs("1", "", None)),
            None
        );
        assert_eq!(
            judge(outputs("", "no\n", None), outputs("", "no\n", None)),
            None
        );
        assert_eq!(
            judge(
                outputs("", "in src/lib.rs:5:12: 1\n", None),
                outputs("", "in src/lib.rs:17:12: 1\n", None)
            ),
            None
        );
        let wrong = judge(outputs("1\n", "", None), outputs("2\n", "", None));
        assert!(matches!(wrong, Some(Problem::Printed { .. })), "{wrong:?}");
    }

    #[test]
    fn compile_errors_panics_and_errors_are_seen() {
        let refused = judge(outputs("", "", None), outputs("", "", Some("no")));
        assert!(matches!(refused, Some(Problem::Refused(_))), "{refused:?}");
        let panic = outputs("", "thread 'main' panicked at src/lib.rs:1:1:\n", None);
        let panicked = judge(outputs("", "", None), panic.clone());
        assert!(
            matches!(panicked, Some(Problem::Panicked(_))),
            "{panicked:?}"
        );
        // Even if it is expected.
        let panicked = judge(panic.clone(), panic);
        assert!(
            matches!(panicked, Some(Problem::Panicked(_))),
            "{panicked:?}"
        );
        // Of an error without text evcxr prints an empty line.
        let error = judge(outputs("", "", None), outputs("", "\n", None));
        assert!(matches!(error, Some(Problem::Error(_))), "{error:?}");
    }

    #[test]
    fn an_error_that_does_not_come_is_seen() {
        let missing = judge(outputs("", "no\n", None), outputs("", "", None));
        assert_eq!(missing, Some(Problem::NoError));
        let missing = judge(outputs("", "", Some("no")), outputs("", "", None));
        assert_eq!(missing, Some(Problem::NoError));
    }
}
