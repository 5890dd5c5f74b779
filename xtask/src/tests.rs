//! `cargo xtask test`: every test there is, with NVIDIA's tools where tests look for them.
//!
//! Tests of libraries, programs, `tests/` and `examples/` run, documentation tests run, and benches
//! are built but not run. Random kernels run once more in a build in which bugs can be planted. The
//! guide is made a book. Notebooks run late, since evcxr, which runs them, is compiled first; then the
//! commands that documents name and that nothing before has run. The output passes through, and the
//! result lines of all test programs are summed up in one last line.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use crate::commands;
use crate::error::{Error, Result};
use crate::guide;
use crate::notebook::{self, Ran};
use crate::tools::{self, Kit};
use crate::workspace::{TargetKind, cannot_start, cargo, targets};

const CARGO_HELP: &str = "Install Rust with rustup";

/// The options of cargo that choose packages or targets.
const SELECTIONS: &[&str] = &[
    "-p",
    "--package",
    "--workspace",
    "--all",
    "--exclude",
    "--lib",
    "--bin",
    "--bins",
    "--test",
    "--tests",
    "--example",
    "--examples",
    "--bench",
    "--benches",
    "--doc",
    "--all-targets",
];

/// The test that plants bugs, which needs a build of its own.
const PLANTED: [&str; 7] = [
    "--package",
    "kiln-random",
    "--features",
    "planted-bugs",
    "--test",
    "planted",
    "--no-fail-fast",
];

/// What tests are told if the snapshots are to be rewritten, as `UPDATE_EXPECT=1` says: trybuild has a
/// variable of its own.
const REWRITE: (&str, &str) = ("TRYBUILD", "overwrite");

/// Sums of the result lines of test programs.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
struct Totals {
    passed: u64,
    failed: u64,
}

/// Installs NVIDIA's tools, then runs the tests; the last line is `N passed, M failed`.
///
/// `args` go to `cargo test`: a filter narrows every step (`notebook` is the one with which notebooks
/// run), and if they choose packages or targets, that one `cargo test` is all that runs.
///
/// # Errors
/// [`Error::TestsFailed`] if any test or step failed; all steps run even so.
pub(crate) fn test(args: &[String]) -> Result<()> {
    tools::setup(Kit::Assembler)?;
    let mut totals = Totals::default();
    for step in steps(args)? {
        let mut command = cargo();
        command.arg("test").args(step).args(args);
        tools::point_to_tools(&mut command);
        if rewrites_snapshots() {
            command.env(REWRITE.0, REWRITE.1);
        }
        totals.add(&watch(&mut command, &mut std::io::stdout())?);
    }
    // The guide's programs are tests; that it becomes a book is one more.
    if args.is_empty() {
        let book = guide::build();
        if let Err(error) = &book {
            eprintln!("xtask: {error}");
        }
        totals.add(&Totals {
            passed: book.is_ok().into(),
            failed: book.is_err().into(),
        });
    }
    if runs_notebooks(args) {
        totals.add(&notebooks());
    }
    if args.is_empty() {
        let (passed, failed) = commands::run();
        totals.add(&Totals { passed, failed });
    }
    println!("{} passed, {} failed", totals.passed, totals.failed);
    match totals.failed {
        0 => Ok(()),
        failed => Err(Error::TestsFailed { failed }),
    }
}

/// Whether snapshots are to be rewritten.
fn rewrites_snapshots() -> bool {
    std::env::var_os("UPDATE_EXPECT").is_some_and(|value| value == "1")
}

/// The options of each `cargo test` to run.
fn steps(args: &[String]) -> Result<Vec<Vec<&'static str>>> {
    if selects(args) {
        return Ok(vec![vec!["--no-fail-fast"]]);
    }
    let common = ["--workspace", "--no-fail-fast"];
    let run = [&common[..], &["--lib", "--bins", "--tests", "--examples"]].concat();
    let doc = [&common[..], &["--doc"]].concat();
    let mut steps = vec![run, doc, PLANTED.to_vec()];
    if targets()?.iter().any(|t| t.kind == TargetKind::Bench) {
        steps.push(vec!["--workspace", "--no-run", "--bench", "*"]);
    }
    Ok(steps)
}

/// Whether the arguments choose packages or targets. Those after `--` are for test programs.
fn selects(args: &[String]) -> bool {
    let for_cargo = args.iter().take_while(|arg| *arg != "--");
    let mut options = for_cargo.map(|arg| arg.split('=').next().unwrap_or(arg));
    options.any(|option| SELECTIONS.contains(&option))
}

/// Whether the arguments leave notebooks in.
fn runs_notebooks(args: &[String]) -> bool {
    let mut filters = args.iter().filter(|arg| !arg.starts_with('-'));
    !selects(args) && filters.all(|filter| filter == "notebook")
}

/// Runs the notebooks. That they cannot run is one failure among those of the tests.
fn notebooks() -> Totals {
    let ran = notebook::run(&[]).unwrap_or_else(|error| {
        eprintln!("xtask: notebooks: {error}");
        Ran {
            passed: 0,
            failed: 1,
        }
    });
    Totals {
        passed: ran.passed,
        failed: ran.failed,
    }
}

/// Runs a command, passing its output on to `out` and summing up what test programs report.
///
/// A command that fails though no test did (it did not build, a program was killed) counts as one
/// failure, so that the totals never say that all is well.
fn watch(command: &mut Command, out: &mut dyn Write) -> Result<Totals> {
    let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let mut child = started.map_err(|source| cannot_start(command, source, CARGO_HELP))?;
    let mut totals = Totals::default();
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output)
            .split(b'\n')
            .map_while(|line| line.ok())
        {
            totals.add(&Totals::of_line(&String::from_utf8_lossy(&line)).unwrap_or_default());
            // A reader that went away (`| head`) is no reason to stop testing.
            let _ = out.write_all(&line).and_then(|()| out.write_all(b"\n"));
        }
    }
    let status = child
        .wait()
        .map_err(|source| cannot_start(command, source, CARGO_HELP))?;
    if !status.success() && totals.failed == 0 {
        totals.failed = 1;
    }
    Ok(totals)
}

impl Totals {
    fn add(&mut self, more: &Totals) {
        self.passed += more.passed;
        self.failed += more.failed;
    }

    /// Reads a result line: `test result: ok. 3 passed; 0 failed; ...` from Rust's test harness, or
    /// `3 passed, 0 failed` from a test program that has none.
    fn of_line(line: &str) -> Option<Totals> {
        let line = line.trim_end();
        let (counts, separator) = match line.strip_prefix("test result: ") {
            Some(result) => (result.split_once(". ")?.1, ';'),
            None => (line, ','),
        };
        let mut parts = counts
            .split(separator)
            .map(|part| part.trim().split_once(' '));
        let mut next = |word: &str| match parts.next()? {
            Some((number, rest)) if rest == word => number.parse().ok(),
            _ => None,
        };
        Some(Totals {
            passed: next("passed")?,
            failed: next("failed")?,
        })
    }
}

#[cfg(test)]
mod check {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn result_lines_are_read() {
        let totals = |passed, failed| Some(Totals { passed, failed });
        let ok = "test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; finished in 0.03s";
        assert_eq!(Totals::of_line(ok), totals(12, 0));
        let failed = "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured";
        assert_eq!(Totals::of_line(failed), totals(3, 2));
        assert_eq!(Totals::of_line("4 passed, 1 failed"), totals(4, 1));
    }

    #[test]
    fn other_lines_are_not_counted() {
        for line in [
            "",
            "running 3 tests",
            "test a ... ok",
            "3 passed",
            "it passed, 1 failed",
        ] {
            assert_eq!(Totals::of_line(line), None, "{line}");
        }
    }

    #[test]
    fn a_filter_is_no_selection() {
        assert!(!selects(&words("saxpy --release -- --lib")));
        assert!(selects(&words("-p kiln-hooks")));
        assert!(selects(&words("--package=kiln-hooks saxpy")));
        assert!(selects(&words("--doc")));
    }

    #[test]
    fn notebooks_run_with_everything_or_by_name() {
        assert!(runs_notebooks(&words("")));
        assert!(runs_notebooks(&words("notebook --release")));
        assert!(!runs_notebooks(&words("saxpy")));
        assert!(!runs_notebooks(&words("-p kiln-hooks")));
    }

    #[test]
    fn output_passes_through_and_is_summed_up() {
        let mut command = Command::new("sh");
        let mut out = Vec::new();
        command.args([
            "-c",
            "echo hello; echo '2 passed, 1 failed'; echo '3 passed, 0 failed'",
        ]);
        let totals = watch(&mut command, &mut out).expect("sh starts");
        assert_eq!(
            totals,
            Totals {
                passed: 5,
                failed: 1
            }
        );
        assert_eq!(out, b"hello\n2 passed, 1 failed\n3 passed, 0 failed\n");
    }

    #[test]
    fn a_failing_step_without_a_failing_test_counts() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo '2 passed, 0 failed'; exit 101"]);
        let totals = watch(&mut command, &mut Vec::new()).expect("sh starts");
        assert_eq!(
            totals,
            Totals {
                passed: 2,
                failed: 1
            }
        );
    }
}
