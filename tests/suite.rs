//! Runs the suite without a GPU: each case is a test on each device, in the interpreter, as code for
//! GPUs, and before NVIDIA's assembler. Tests that are files of IR are here, too.
//!
//! A test is named by the device, the chapter and the case, so a filter takes any of them:
//! `cargo xtask test compiled_for_8_lanes`, `cargo xtask test warp::`, `cargo xtask test saxpy`. It has a
//! device of its own, as an error is told to whoever waits for the device next.
//!
//! Ways to compile for the CPU that differ in little take turns: each case runs in one of them, and the others are
//! ignored tests. `--include-ignored` runs them all, and a filter whatever it names.

mod amdgpu;
mod assemble;
mod cells;
mod checked;
mod cpu;
mod filetests;
mod gpu_on_host;
mod planted;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use suite::{Case, Outcome};

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.include_ignored |= arguments.filter.is_some() && !arguments.ignored;
    let chapters = [
        cpu::tests(),
        cells::tests(),
        checked::tests(),
        gpu_on_host::tests(),
        assemble::tests(),
        filetests::tests(),
        amdgpu::tests(),
    ];
    let tests = chapters.into_iter().flatten().collect();
    libtest_mimic::run(&arguments, tests).exit_code()
}

/// A test of a name, which fails as a case does.
fn test(name: impl Into<String>, run: impl FnOnce() -> Outcome + Send + 'static) -> Trial {
    Trial::test(name, move || run().map_err(Failed::from))
}

/// A test for each case of the suite, on one device.
fn each_case(device: &str, run: impl Fn(&Case) -> Outcome + Clone + Send + 'static) -> Vec<Trial> {
    let cases = suite::cases().into_iter();
    let on_device = |case: Case| {
        let run = run.clone();
        test(format!("{device}::{}", case.path()), move || run(&case))
    };
    cases.map(on_device).collect()
}

/// Tests of one of several devices, each of which is ignored but in its device's turn: a case runs on one of them.
fn in_turns((device, devices): (usize, usize), tests: Vec<Trial>) -> impl Iterator<Item = Trial> {
    let numbered = tests.into_iter().enumerate();
    numbered
        .map(move |(case, test)| test.with_ignored_flag(!(case + device).is_multiple_of(devices)))
}

/// A seed that the environment may set.
fn seed(variable: &str) -> u64 {
    let Ok(text) = std::env::var(variable) else {
        return 1;
    };
    text.parse()
        .unwrap_or_else(|_| panic!("{variable}: `{text}` is no number"))
}
