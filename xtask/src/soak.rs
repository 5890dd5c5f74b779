//! `cargo xtask soak`: the long forms of tests, which show what takes hours to go wrong.

use crate::error::{Error, Result};
use crate::fuzz::fresh_seed;
use crate::programs;
use crate::tools;
use crate::workspace::{cargo, run};

/// How long the mixed work takes if nobody says, in minutes.
const MINUTES: u64 = 60;

/// How many random kernels of each kind the tests take that take fewer in CI.
const KERNELS: &str = "20000";

/// How long, and from which seed.
#[derive(Debug, PartialEq, Eq)]
struct Soak {
    minutes: u64,
    seed: u64,
}

impl Soak {
    fn parse(args: &[String], seed: u64) -> Result<Soak> {
        let mut soak = Soak {
            minutes: MINUTES,
            seed,
        };
        let usage = |message| Error::Usage { message };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let field = match arg.as_str() {
                "--minutes" => &mut soak.minutes,
                "--seed" => &mut soak.seed,
                other => return Err(usage(format!("`soak` has no option `{other}`"))),
            };
            let number = args.next().and_then(|text| text.parse().ok());
            *field = number.ok_or_else(|| usage(format!("`{arg}` takes a number")))?;
        }
        Ok(soak)
    }
}

/// Runs all of them, also where one fails.
///
/// # Errors
/// Wrong options, and [`Error::Failed`] if any of them failed.
pub(crate) fn soak(args: &[String]) -> Result<()> {
    let soak = Soak::parse(args, fresh_seed())?;
    println!(
        "xtask: {} minutes of mixed work, seed {}",
        soak.minutes, soak.seed
    );
    let scenarios = driver_tests("scenarios", &[], &[("KILN_SCENARIOS", "whole".to_owned())]);
    let flat = driver_tests(
        "soak",
        &["--test-threads=1"],
        &[
            ("KILN_SOAK_MINUTES", soak.minutes.to_string()),
            ("KILN_SOAK_SEED", soak.seed.to_string()),
            // What threads keep of freed memory counts as used to glibc, and grows for hours.
            ("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0".to_owned()),
        ],
    );
    let mut random = programs::random_kernels()?;
    random.args(["--seed", &soak.seed.to_string()]);
    random.args(["--minutes", &(soak.minutes / 6).max(1).to_string()]);
    let random = run(&mut random, "random kernels", "See its output above");
    scenarios
        .and(flat)
        .and(random)
        .and(whole("--test=suite", "kiln-tests", &["--include-ignored"]))
        .and(whole("--test=behavior", "kiln-tests", &["rows"]))
        .and(whole("--tests", "kiln-random", &[]))
        .and(whole("--tests", "kiln-random-functions", &[]))
        .and(whole("--test=kernels", "kiln-random", &["--ignored"]))
}

/// Runs tests of which CI takes a part: those that are ignored there, the assembler on all architectures where it is
/// set up, and this many random kernels of each kind.
fn whole(tests: &str, package: &str, options: &[&str]) -> Result<()> {
    let mut command = cargo();
    command.args(["test", "--package", package, tests, "--"]);
    command.args(options).env("KILN_FUZZ_COUNT", KERNELS);
    command.env("KILN_ASSEMBLE_ALL", "1");
    tools::point_to_tools(&mut command);
    run(&mut command, package, "See its output above")
}

/// Runs tests on the fake driver, with what they print.
fn driver_tests(filter: &str, options: &[&str], variables: &[(&str, String)]) -> Result<()> {
    let mut command = cargo();
    command.args([
        "test",
        "--package",
        "kiln-jit-core",
        "--test",
        "cuda_driver",
    ]);
    command.args([filter, "--", "--nocapture"]).args(options);
    for (name, value) in variables {
        command.env(name, value);
    }
    run(&mut command, filter, "See its output above")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options() {
        let parse = |text: &str| {
            let words: Vec<_> = text.split_whitespace().map(str::to_owned).collect();
            Soak::parse(&words, 7).ok()
        };
        let soak = |minutes, seed| Some(Soak { minutes, seed });
        assert_eq!(parse(""), soak(MINUTES, 7));
        assert_eq!(parse("--seed 9 --minutes 6"), soak(6, 9));
        for wrong in ["--minutes", "--minutes x", "--hours 1"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
