//! Runs random kernels on all backends and reports where they disagree, reduced.
//!
//! ```text
//! fuzz-kernels [--seed S] [--count N] [--minutes M] [--out FOLDER] [--large] [--sound] [--keep]
//!              [--on-host] [--first] [--kernel-limit SECONDS]
//! fuzz-kernels --show S | --replay FILE
//! ```

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use kiln_random::run::{OnHostRunner, reference};
use kiln_random::{Budget, Campaign, Case, compare, generate, runners, sound};
use lexopt::prelude::*;

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
  --kernel-limit SECONDS  stop at a kernel that runs longer than this, which is a failure
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
    kernel_limit: Option<u64>,
    show: Option<u64>,
    replay: Option<PathBuf>,
    help: bool,
}

fn options() -> Result<Options, lexopt::Error> {
    let mut options = Options::default();
    let mut args = lexopt::Parser::from_env();
    while let Some(arg) = args.next()? {
        match arg {
            Long("seed") => options.seed = args.value()?.parse()?,
            Long("count") => options.count = Some(args.value()?.parse()?),
            Long("minutes") => options.minutes = Some(args.value()?.parse()?),
            Long("out") => options.out = Some(args.value()?.into()),
            Long("large") => options.large = true,
            Long("sound") => options.sound = true,
            Long("on-host") => options.on_host = true,
            Long("keep") => options.keep = true,
            Long("first") => options.first = true,
            Long("kernel-limit") => options.kernel_limit = Some(args.value()?.parse()?),
            Long("show") => options.show = Some(args.value()?.parse()?),
            Long("replay") => options.replay = Some(args.value()?.into()),
            Long("help") | Short('h') => options.help = true,
            _ => return Err(arg.unexpected()),
        }
    }
    Ok(options)
}

fn main() -> ExitCode {
    let result = match options() {
        Ok(options) if options.help => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Ok(options) => run(&options),
        Err(error) => Err(format!("{error}; `--help` lists the options")),
    };
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
        kernel_limit: options.kernel_limit.map(Duration::from_secs),
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
