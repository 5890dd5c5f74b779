//! Runs random kernels on all backends and reports where they disagree, reduced.
//!
//! ```text
//! fuzz-kernels [--seed S] [--count N] [--minutes M] [--out FOLDER] [--large] [--sound] [--keep]
//! fuzz-kernels --show S | --replay FILE
//! ```

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use kiln_random::run::reference;
use kiln_random::{
    Budget, Case, Coverage, Runner, compare, coverage, generate, reduce, runners, sound,
};

const USAGE: &str = "\
fuzz-kernels: random kernels on all backends

  --seed S       the first seed (0)
  --count N      how many kernels (1000, or no limit with --minutes)
  --minutes M    how long, at most
  --out FOLDER   where to write cases that fail, as SEED.kir; otherwise they are printed
  --large        large kernels
  --sound        check also that each kernel is sound, which all should be
  --keep         do not reduce them
  --show S       print the case of a seed and stop
  --replay FILE  run a case that was written before and stop";

/// How many failures are enough.
const MAX_FAILURES: usize = 10;

/// What the command line asks for.
#[derive(Default)]
struct Options {
    seed: u64,
    count: Option<u64>,
    minutes: Option<f64>,
    out: Option<PathBuf>,
    keep: bool,
    large: bool,
    sound: bool,
    show: Option<u64>,
    replay: Option<PathBuf>,
}

fn options() -> Result<Options, String> {
    let mut options = Options::default();
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("`{arg}` takes a value"));
        match arg.as_str() {
            "--seed" => options.seed = number(&value()?)?,
            "--count" => options.count = Some(number(&value()?)?),
            "--minutes" => options.minutes = Some(number(&value()?)?),
            "--out" => options.out = Some(value()?.into()),
            "--large" => options.large = true,
            "--sound" => options.sound = true,
            "--keep" => options.keep = true,
            "--show" => options.show = Some(number(&value()?)?),
            "--replay" => options.replay = Some(value()?.into()),
            _ => return Err(USAGE.to_owned()),
        }
    }
    Ok(options)
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("`{text}` is no number"))
}

fn main() -> ExitCode {
    let result = options().and_then(|options| run(&options));
    match result {
        Ok(0) => ExitCode::SUCCESS,
        Ok(failures) => {
            println!("{failures} kernels failed");
            ExitCode::FAILURE
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// The number of failures.
fn run(options: &Options) -> Result<usize, String> {
    let (reference, others) = (reference(), runners());
    let budget = match options.large {
        true => Budget::large(),
        false => Budget::default(),
    };
    if let Some(seed) = options.show {
        print!("{}", generate(seed, &budget).to_text());
        return Ok(0);
    }
    if let Some(path) = &options.replay {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let case = Case::from_text(&text)?;
        if let Err(why) = sound(&case) {
            println!("note: {why}");
        }
        return Ok(match compare(&case, &*reference, &others) {
            Some(mismatch) => {
                println!("{mismatch}");
                1
            }
            None => 0,
        });
    }
    let count = match (options.count, options.minutes) {
        (Some(count), _) => count,
        (None, Some(_)) => u64::MAX,
        (None, None) => 1000,
    };
    let started = Instant::now();
    let limit = options.minutes.map(|m| Duration::from_secs_f64(m * 60.0));
    let (mut total, mut failures) = (Coverage::default(), 0);
    for seed in (options.seed..).take(usize::try_from(count).unwrap_or(usize::MAX)) {
        if limit.is_some_and(|limit| started.elapsed() > limit) || failures >= MAX_FAILURES {
            break;
        }
        let case = generate(seed, &budget);
        let covered = coverage(&case);
        if covered.divergent_barriers > 0 {
            println!("seed {seed}: not all threads come to a barrier");
            failures += 1;
        }
        total.merge(&covered);
        failures += usize::from(check(case, &*reference, &others, options)?);
    }
    println!("{total}");
    let (cases, seconds) = (total.cases, started.elapsed().as_secs_f64());
    println!("{cases} kernels in {seconds:.1} s");
    Ok(failures)
}

/// Whether a case failed; it is reported.
fn check(
    case: Case,
    reference: &dyn Runner,
    others: &[Box<dyn Runner>],
    options: &Options,
) -> Result<bool, String> {
    let seed = case.seed;
    if options.sound
        && let Err(why) = sound(&case)
    {
        println!("seed {seed} is not sound: {why}");
        return Ok(true);
    }
    let Some(mismatch) = compare(&case, reference, others) else {
        return Ok(false);
    };
    println!("seed {seed}: {mismatch}");
    let case = match options.keep {
        true => case,
        false => {
            // A generated case is sound; if this one is not, that is what is wrong with it.
            let was_sound = sound(&case).is_ok();
            reduce(case, &|c| {
                let found = compare(c, reference, others);
                found.is_some_and(|m| m.runner == mismatch.runner) && sound(c).is_ok() == was_sound
            })
        }
    };
    let text = case.to_text();
    match &options.out {
        None => println!("{text}"),
        Some(folder) => {
            let path = folder.join(format!("{seed}.kir"));
            let written =
                std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, text));
            written.map_err(|e| format!("{}: {e}", path.display()))?;
            println!("written to {}", path.display());
        }
    }
    Ok(true)
}
