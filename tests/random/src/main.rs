//! Runs random kernels on all backends and reports where they disagree, reduced.
//!
//! ```text
//! fuzz-kernels [--seed S] [--count N] [--minutes M] [--out FOLDER] [--large] [--sound] [--keep]
//!              [--on-host]
//! fuzz-kernels --show S | --replay FILE
//! ```

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use kiln_random::run::{OnHostRunner, reference};
use kiln_random::{Budget, Campaign, Case, compare, generate, runners, sound};

const USAGE: &str = "\
fuzz-kernels: random kernels on all backends

  --seed S       the first seed (0)
  --count N      how many kernels (1000, or no limit with --minutes)
  --minutes M    how long, at most
  --out FOLDER   where to write cases that fail, as SEED.kir; otherwise they are printed
  --large        large kernels
  --sound        check also that each kernel is sound, which all should be
  --keep         do not reduce them
  --on-host      compare code for GPUs, run on this CPU, in place of the CPU's own
  --first        stop at the first that fails, and do not count constructs
  --show S       print the case of a seed and stop
  --replay FILE  run a case that was written before and stop";

/// How many failures are enough.
const FAILURES: usize = 10;

/// How long a failing case is made smaller.
const REDUCTION: Duration = Duration::from_secs(120);

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
    on_host: bool,
    first: bool,
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
            "--on-host" => options.on_host = true,
            "--keep" => options.keep = true,
            "--first" => options.first = true,
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
    if std::env::args().any(|arg| arg == "--help" || arg == "-h") {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
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
    let budget = match options.large {
        true => Budget::large(),
        false => Budget::default(),
    };
    if let Some(seed) = options.show {
        print!("{}", generate(seed, &budget).to_text());
        return Ok(0);
    }
    if let Some(path) = &options.replay {
        return replay(path);
    }
    let count = match (options.count, options.minutes) {
        (Some(count), _) => count,
        (None, Some(_)) => u64::MAX,
        (None, None) => 1000,
    };
    let campaign = Campaign {
        budget,
        limit: options.minutes.map(minutes).transpose()?,
        sound: options.sound,
        on_host: options.on_host.then(OnHostRunner::default),
        coverage: !options.first,
        failures: if options.first { 1 } else { FAILURES },
        ..Campaign::new(options.seed, count)
    };
    println!("first seed {}", options.seed);
    let report = campaign.run();
    println!("{}{report}", report.coverage);
    for failure in &report.failures {
        println!("{failure}");
        let case = match options.keep {
            true => generate(failure.seed, &campaign.budget),
            false => campaign.reduced(failure, REDUCTION),
        };
        failure.keep(&case, options.out.as_ref())?;
    }
    let divergent = report.coverage.divergent_barriers;
    if divergent > 0 {
        println!("not all threads come to {divergent} barriers");
    }
    Ok(report.failures.len() + usize::from(divergent > 0))
}

fn minutes(minutes: f64) -> Result<Duration, String> {
    Duration::try_from_secs_f64(minutes * 60.0).map_err(|e| format!("{minutes} minutes: {e}"))
}

/// Runs a case that was written before.
fn replay(path: &PathBuf) -> Result<usize, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let case = Case::from_text(&text)?;
    if let Err(why) = sound(&case) {
        println!("note: {why}");
    }
    Ok(match compare(&case, &*reference(), &runners()) {
        Some(mismatch) => {
            println!("{mismatch}");
            1
        }
        None => 0,
    })
}
