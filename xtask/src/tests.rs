//! `cargo xtask test`: every test there is, with NVIDIA's tools where tests look for them.
//!
//! Tests of libraries, programs, `tests/` and `examples/` run, documentation tests run, and those of the crate
//! outside the workspace (`tests/outside`). Beside them, as most of them leave a processor idle at times,
//! run other commands of xtask: the notebooks, for which evcxr is compiled first, the way of a newcomer, the guide as a
//! book, the commands that documents name and that nothing else runs, the benches among them, and what other people's
//! crates may be. The output of tests passes through, that of the others follows, and the result lines of all
//! are summed up in one last line. Where everything runs, tests that pass are not named: there are thousands.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::panic::resume_unwind;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::error::{Error, Result};
use crate::outside;
use crate::python;
use crate::tools::{self, Kit};
use crate::workspace::{cannot_start, cargo};

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

/// Tests of everything.
const EVERYTHING: [&str; 2] = ["--workspace", "--no-fail-fast"];

/// The macros, whose programs are those of the facade: with `doctest = false` alone, `--doc` would ask them all the same, and
/// link a Kiln of the host. Without others the features of what is left would be others, and all of it built anew.
const MACROS: [&str; 2] = ["kiln-kernel-macro", "kiln-directives-macro"];

/// The commands of xtask that are tests, too, each with the filter with which it runs. The first takes longest, and is
/// built while the tests are; the last are short, so that little is left to one of two at the end.
const BESIDE: [&str; 5] = ["notebook", "newcomer", "commands", "guide", "deny"];

/// What tests are told if the snapshots are to be rewritten, as `UPDATE_EXPECT=1` says: trybuild has a
/// variable of its own.
const REWRITE: (&str, &str) = ("TRYBUILD", "overwrite");

/// What running tests has shown.
#[derive(Debug, Default)]
struct Seen {
    totals: Totals,
    /// The lines that say of a test that it failed, and the commands that failed though none of their tests did.
    failures: Vec<String>,
}

impl Seen {
    fn add(&mut self, more: Seen) {
        self.totals.add(&more.totals);
        self.failures.extend(more.failures);
    }

    /// Names what failed once more: thousands of lines may lie between the place where it did and the end.
    fn name_failures(&self) {
        for failure in &self.failures {
            println!("failed: {failure}");
        }
    }
}

/// How many tests passed and how many failed.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Those that passed.
    pub(crate) passed: u64,
    /// The others.
    pub(crate) failed: u64,
}

/// Installs NVIDIA's tools, then runs the tests; the last line is `N passed, M failed`.
///
/// `args` go to `cargo test`: a filter narrows every step (the name of a command of [`BESIDE`] is the one
/// with which it runs), and if they choose packages or targets, that one `cargo test` is all that runs.
///
/// # Errors
/// [`Error::TestsFailed`] if any test or step failed; all steps run even so.
pub(crate) fn test(args: &[String]) -> Result<()> {
    tools::setup(Kit::Assembler)?;
    // Tests of this crate build this program anew, after which the system knows its file no more.
    let this = std::env::current_exe().map_err(Error::io("find", "this program"))?;
    let beside = BESIDE.into_iter().filter(|name| is_beside(name, args));
    let left = Mutex::new(beside.collect::<VecDeque<_>>());
    let (seen, all_beside) = thread::scope(|scope| {
        let beside = scope.spawn(|| run_beside(&this, &left));
        let seen = run_tests(args);
        // What is left then goes on in two.
        let more = run_beside(&this, &left);
        let beside = beside.join().unwrap_or_else(|panic| resume_unwind(panic));
        (seen, [beside, more])
    });
    let mut seen = seen?;
    for (beside, output) in all_beside {
        let _ = std::io::stdout().write_all(&output);
        seen.add(beside?);
    }
    seen.name_failures();
    seen.totals.report()
}

/// Runs the tests of cargo.
fn run_tests(args: &[String]) -> Result<Seen> {
    let mut seen = Seen::default();
    let python = python::python()?;
    let of_workspace = steps(args).into_iter().map(|step| {
        let mut command = cargo();
        command.arg("test").args(step);
        Ok(command)
    });
    let outside = (!selects(args)).then(outside::tests);
    for command in of_workspace.chain(outside) {
        let mut command = command?;
        command.args(args);
        tools::point_to_tools(&mut command);
        if let Some(python) = &python {
            command.env(python::PYTHON, python);
        }
        if rewrites_snapshots() {
            command.env(REWRITE.0, REWRITE.1);
        }
        let mut out = std::io::stdout();
        seen.add(watch(&mut command, names_passed(args), &mut out)?);
    }
    Ok(seen)
}

/// Whether tests that pass are named: where someone has chosen some of them.
fn names_passed(args: &[String]) -> bool {
    !args.is_empty()
}

/// Whether a line says that a test, or a command that is one, has failed; `FAILED (3 s)` is how commands say it.
fn says_failed(line: &str) -> bool {
    let ending = line.rsplit_once(" ... ").map(|(_, ending)| ending);
    ending.is_some_and(|ending| ending == "FAILED" || ending.starts_with("FAILED ("))
}

/// Whether a line says that a test has passed, and nothing else.
fn says_passed(line: &str) -> bool {
    line.starts_with("test ") && line.ends_with(" ... ok")
}

/// Runs the commands that are tests, too, one after the other of those that are left. Gives what they print. The first
/// has one job of cargo's, as what builds the tests meanwhile needs the other processors, and memory.
fn run_beside(this: &Path, left: &Mutex<VecDeque<&str>>) -> (Result<Seen>, Vec<u8>) {
    let mut output = Vec::new();
    let next = || {
        left.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front()
    };
    let mut run = || {
        let mut seen = Seen::default();
        while let Some(name) = next() {
            let mut command = Command::new(this);
            command.arg(name);
            if name == BESIDE[0] {
                command.env("CARGO_BUILD_JOBS", "1");
            }
            let mut watched = watch(&mut command, true, &mut output)?;
            watched.totals = watched.totals.or_one_passed();
            seen.add(watched);
        }
        Ok(seen)
    };
    (run(), output)
}

/// Whether snapshots are to be rewritten.
pub(crate) fn rewrites_snapshots() -> bool {
    std::env::var_os("UPDATE_EXPECT").is_some_and(|value| value == "1")
}

/// The options of each `cargo test` to run.
fn steps(args: &[String]) -> Vec<Vec<&'static str>> {
    if selects(args) {
        return vec![vec!["--no-fail-fast"]];
    }
    // `--lib` and `--bins` would build those, too, of which their manifest says that they have no tests.
    let run = [&EVERYTHING[..], &["--tests", "--examples"]].concat();
    let mut doc = [&EVERYTHING[..], &["--doc"]].concat();
    doc.extend(MACROS.iter().flat_map(|name| ["--exclude", name]));
    vec![run, doc]
}

/// Whether the arguments choose packages or targets. Those after `--` are for test programs.
fn selects(args: &[String]) -> bool {
    let for_cargo = args.iter().take_while(|arg| *arg != "--");
    let mut options = for_cargo.map(|arg| arg.split('=').next().unwrap_or(arg));
    options.any(|option| SELECTIONS.contains(&option))
}

/// Whether the arguments leave a command of [`BESIDE`] in.
fn is_beside(command: &str, args: &[String]) -> bool {
    let mut filters = args.iter().filter(|arg| !arg.starts_with('-'));
    !selects(args) && filters.all(|filter| filter == command)
}

/// Runs a command, passing its output on to `out` and summing up what test programs report. Tests that pass
/// are left out unless they are to be named.
///
/// A command that fails though no test did (it did not build, a program was killed) counts as one
/// failure, so that the totals never say that all is well.
fn watch(command: &mut Command, names_passed: bool, out: &mut dyn Write) -> Result<Seen> {
    let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let mut child = started.map_err(|source| cannot_start(command, source, CARGO_HELP))?;
    let mut seen = Seen::default();
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output)
            .split(b'\n')
            .map_while(|line| line.ok())
        {
            let text = String::from_utf8_lossy(&line);
            seen.totals.add(&Totals::of_line(&text).unwrap_or_default());
            if says_failed(&text) {
                seen.failures.push(text.trim_end().to_owned());
            }
            if !names_passed && says_passed(&text) {
                continue;
            }
            // A reader that went away (`| head`) is no reason to stop testing.
            let _ = out.write_all(&line).and_then(|()| out.write_all(b"\n"));
        }
    }
    let status = child
        .wait()
        .map_err(|source| cannot_start(command, source, CARGO_HELP))?;
    if !status.success() && seen.totals.failed == 0 {
        seen.totals.failed = 1;
        seen.failures.push(format!("{command:?}, {status}"));
    }
    Ok(seen)
}

impl Totals {
    /// Prints them as a last line.
    ///
    /// # Errors
    /// [`Error::TestsFailed`] if there are any that failed.
    pub(crate) fn report(self) -> Result<()> {
        println!("{} passed, {} failed", self.passed, self.failed);
        match self.failed {
            0 => Ok(()),
            failed => Err(Error::TestsFailed { failed }),
        }
    }

    fn add(&mut self, more: &Totals) {
        self.passed += more.passed;
        self.failed += more.failed;
    }

    /// What a command that has not failed comes to, which is one test if it counts none.
    fn or_one_passed(self) -> Totals {
        match self {
            Totals {
                passed: 0,
                failed: 0,
            } => Totals {
                passed: 1,
                failed: 0,
            },
            counted => counted,
        }
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
    fn a_command_that_counts_nothing_is_one_test() {
        let one = Totals {
            passed: 1,
            failed: 0,
        };
        assert_eq!(Totals::default().or_one_passed(), one);
        let failed = Totals {
            passed: 0,
            failed: 1,
        };
        assert_eq!(failed.or_one_passed(), failed);
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
    fn other_commands_run_with_everything_or_by_name() {
        assert!(is_beside("notebook", &words("")));
        assert!(is_beside("notebook", &words("notebook --release")));
        assert!(!is_beside("guide", &words("notebook")));
        assert!(!is_beside("notebook", &words("saxpy")));
        assert!(!is_beside("notebook", &words("-p kiln-hooks")));
    }

    #[test]
    fn output_passes_through_and_is_summed_up() {
        let mut command = Command::new("sh");
        let mut out = Vec::new();
        command.args([
            "-c",
            "echo hello; echo '2 passed, 1 failed'; echo '3 passed, 0 failed'",
        ]);
        let seen = watch(&mut command, true, &mut out).expect("sh starts");
        assert_eq!(
            seen.totals,
            Totals {
                passed: 5,
                failed: 1
            }
        );
        assert_eq!(out, b"hello\n2 passed, 1 failed\n3 passed, 0 failed\n");
    }

    #[test]
    fn tests_that_pass_are_named_where_some_are_chosen() {
        const SAID: &str = "test a::b ... ok\ntest c ... FAILED\ntest d   ... ok\n\
                            test result: FAILED. 2 passed; 1 failed; 0 ignored\ntest e says ok\n";
        let said = |names_passed| {
            let mut out = Vec::new();
            let watched = watch(Command::new("printf").arg(SAID), names_passed, &mut out);
            assert_eq!(watched.expect("printf starts").totals.passed, 2);
            String::from_utf8(out).expect("it is text")
        };
        assert_eq!(said(true), SAID);
        let failed = SAID.lines().filter(|line| !line.ends_with(" ... ok"));
        assert_eq!(
            said(false).lines().collect::<Vec<_>>(),
            failed.collect::<Vec<_>>()
        );
        assert!(names_passed(&words("saxpy")) && !names_passed(&[]));
    }

    #[test]
    fn what_failed_is_named_once_more() {
        let said = "test a ... ok\ntest b::c ... FAILED\ncommand `d` ... FAILED (3.1 s)\n\
                    newcomer e ... ok (0.1 s)\nit says ... FAILED to say\n1 passed, 2 failed\n";
        let watched = watch(Command::new("printf").arg(said), false, &mut Vec::new());
        assert_eq!(
            watched.expect("printf starts").failures,
            ["test b::c ... FAILED", "command `d` ... FAILED (3.1 s)"]
        );
    }

    #[test]
    fn a_failing_step_without_a_failing_test_counts() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo '2 passed, 0 failed'; exit 101"]);
        let seen = watch(&mut command, true, &mut Vec::new()).expect("sh starts");
        assert_eq!(
            seen.totals,
            Totals {
                passed: 2,
                failed: 1
            }
        );
        let [failure] = &seen.failures[..] else {
            panic!("one is named: {:?}", seen.failures);
        };
        assert!(
            failure.starts_with("\"sh\"") && failure.contains("101"),
            "{failure}"
        );
    }
}
