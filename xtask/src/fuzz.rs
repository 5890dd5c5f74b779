//! `cargo xtask fuzz`: random kernels, or random Rust functions, from fresh seeds.

use std::time::SystemTime;

use crate::error::{Error, Result};
use crate::programs;
use crate::workspace::{cargo, run};

/// The option for functions instead of kernels.
const FUNCTIONS: &str = "--functions";

/// How many functions there are if nobody says.
const COUNT: u64 = 1000;

/// How many functions are compiled as one program: rustc holds all of it in memory.
const BATCH: u64 = 200;

/// Runs random kernels until the time is up, or random functions until their number is reached.
///
/// # Errors
/// Wrong options, and [`Error::Failed`] if any of them differed.
pub(crate) fn fuzz(args: &[String]) -> Result<()> {
    match args.iter().any(|arg| arg == FUNCTIONS) {
        true => functions(args),
        false => kernels(args),
    }
}

/// Seeds that nobody has tried: they follow the clock, far enough apart for any number of runs.
pub(crate) fn fresh_seed() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |time| time.as_secs()) << 24
}

/// Runs the program of random kernels, which takes the options.
fn kernels(args: &[String]) -> Result<()> {
    let given = |option: &str| args.iter().any(|arg| arg == option);
    let mut command = programs::random_kernels()?;
    if !given("--seed") {
        command.args(["--seed", &fresh_seed().to_string()]);
    }
    if !given("--minutes") && !given("--count") {
        command.args(["--minutes", "5"]);
    }
    command.args(args);
    run(&mut command, "fuzzing", "See its output above")
}

/// Which functions to run.
#[derive(Debug, PartialEq, Eq)]
struct Functions {
    seed: u64,
    count: u64,
}

impl Functions {
    fn parse(args: &[String], fresh_seed: u64) -> Result<Functions> {
        let mut functions = Functions {
            seed: fresh_seed,
            count: COUNT,
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let field = match arg.as_str() {
                FUNCTIONS => continue,
                "--seed" => &mut functions.seed,
                "--count" => &mut functions.count,
                other => return Err(usage(format!("`fuzz {FUNCTIONS}` has no option `{other}`"))),
            };
            let number = args.next().and_then(|text| text.parse().ok());
            *field = number.ok_or_else(|| usage(format!("`{arg}` takes a number")))?;
        }
        Ok(functions)
    }

    /// The first seed and the count of each program.
    fn batches(&self) -> impl Iterator<Item = (u64, u64)> {
        let starts = (0..self.count).step_by(BATCH as usize);
        starts.map(|at| (self.seed.wrapping_add(at), BATCH.min(self.count - at)))
    }
}

fn usage(message: String) -> Error {
    Error::Usage { message }
}

/// Compiles and runs random functions, all batches even if one fails.
fn functions(args: &[String]) -> Result<()> {
    let functions = Functions::parse(args, fresh_seed())?;
    let mut result = Ok(());
    for (seed, count) in functions.batches() {
        println!("xtask: {count} functions from seed {seed}");
        let mut command = cargo();
        // With the features of the whole workspace, as its tests have it: Kiln is not built once more.
        command.args(["test", "--workspace"]);
        command.args(["--test", "random-functions", "--quiet"]);
        command.env("KILN_FUNCTIONS_SEED", seed.to_string());
        command.env("KILN_FUNCTIONS_COUNT", count.to_string());
        let what = format!("{count} functions from seed {seed}");
        result = result.and(run(&mut command, &what, "See its output above"));
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn functions_are_chosen_by_seed_and_count() {
        let parse = |text| Functions::parse(&words(text), 7);
        let functions = |seed, count| Functions { seed, count };
        assert_eq!(parse("--functions").ok(), Some(functions(7, COUNT)));
        let both = parse("--functions --count 5 --seed 9");
        assert_eq!(both.ok(), Some(functions(9, 5)));
        for wrong in [
            "--functions --minutes 5",
            "--functions --seed",
            "--functions --seed x",
        ] {
            assert!(matches!(parse(wrong), Err(Error::Usage { .. })), "{wrong}");
        }
    }

    #[test]
    fn batches_cover_every_seed_once() {
        let functions = Functions {
            seed: u64::MAX - 100,
            count: 2 * BATCH + 1,
        };
        let seeds = |(first, count): (u64, u64)| (0..count).map(move |i| first.wrapping_add(i));
        let all: Vec<u64> = functions.batches().flat_map(seeds).collect();
        let want = (0..functions.count).map(|i| functions.seed.wrapping_add(i));
        assert_eq!(all, want.collect::<Vec<_>>());
    }
}
