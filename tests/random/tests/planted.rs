//! Bugs planted in the compiled CPU backend, one at a time: random kernels find them.
//!
//! The backend knows nothing of them. `planted/mutants.txt` says what each changes in its source; a copy of
//! the workspace with all of them is compiled once, and run for each in a process of its own, as wrong code
//! may end it. `KILN_FUZZ_SEED` sets another first seed. That takes minutes: `cargo xtask soak` does it, CI holds that each bug
//! still has its place in the sources.

mod copied;
mod mutants;

use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use kiln_random::{Campaign, generate};

/// Kernels that a bug has to be found by.
const KERNELS: u64 = 2000;

/// How many bugs may stay unfound.
const UNFOUND: usize = 1;

/// How often a bug is looked for, each time with other kernels, if the process of the one before has ended:
/// with most bugs some kernel may access memory anywhere.
const ATTEMPTS: u64 = 3;

/// How long one bug is looked for.
const LIMIT: Duration = Duration::from_secs(300);

/// Seconds after which a kernel counts as endless, which shows a bug as other results do: the same kernel ends without it.
/// Kernels take milliseconds.
const KERNEL_LIMIT: &str = "30";

/// What came of looking for a bug.
enum Outcome {
    /// The seed that found it, and how it showed.
    Found(u64, String),
    /// Nothing differed.
    Unfound,
    /// The process ended or had to be ended: a bug that says nothing about the comparison.
    Lost(String),
}

#[test]
fn planted_bugs_have_their_places() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &str| std::fs::read_to_string(root.join(path));
    let changed = mutants::plant(&mutants::all(), read).unwrap_or_else(|why| panic!("{why}"));
    assert!(!changed.is_empty());
}

#[test]
#[ignore = "a copy of the workspace is compiled and run for each bug, which takes minutes"]
fn planted_bugs_are_found() {
    let seed = std::env::var("KILN_FUZZ_SEED").unwrap_or_else(|_| "0".to_owned());
    let seed: u64 = seed.parse().expect("KILN_FUZZ_SEED is a number");
    let mutants = mutants::all();
    let started = Instant::now();
    let program = copied::build(&mutants).unwrap_or_else(|why| panic!("{why}"));
    println!("built in {:.0} s", started.elapsed().as_secs_f64());
    let started = Instant::now();
    let (mut found, mut unfound) = (0, Vec::new());
    for bug in mutants.iter().map(|mutant| mutant.name) {
        match look_until_found(&program, bug, seed) {
            Outcome::Found(seed, how) => {
                println!("{bug}: {how}");
                let campaign = Campaign::new(seed, 1);
                let right = campaign.check(&generate(seed, &campaign.budget)).1;
                assert!(right.is_ok(), "{right:?}: this is no planted bug");
                found += 1;
            }
            Outcome::Unfound => unfound.push(bug.to_owned()),
            Outcome::Lost(why) => unfound.push(format!("{bug} ({why})")),
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    println!("{found} of {} bugs found in {seconds:.0} s", mutants.len());
    println!("not found: {}", unfound.join(", "));
    assert!(mutants.len() >= 30, "there are too few bugs");
    assert!(unfound.len() <= UNFOUND, "not found: {unfound:?}");
}

fn look_until_found(program: &Path, bug: &str, seed: u64) -> Outcome {
    let mut outcome = look_for(program, bug, seed);
    for attempt in 1..ATTEMPTS {
        let Outcome::Lost(why) = &outcome else { break };
        println!("{bug}: {why}; once more");
        outcome = look_for(program, bug, seed + attempt * KERNELS);
    }
    outcome
}

fn look_for(program: &Path, bug: &str, seed: u64) -> Outcome {
    let (seed, count) = (&seed.to_string(), KERNELS.to_string());
    let mut command = Command::new(program);
    command
        .env(copied::PLANTED, bug)
        .args(["--seed", seed, "--count", &count, "--first", "--keep"])
        .args(["--kernel-limit", KERNEL_LIMIT])
        .args(["--out", env!("CARGO_TARGET_TMPDIR")])
        .stdout(Stdio::piped());
    let mut child = command.spawn().expect("the program of this crate starts");
    let started = Instant::now();
    let status: ExitStatus = loop {
        if let Some(status) = child.try_wait().expect("it can be waited for") {
            break status;
        }
        if started.elapsed() > LIMIT {
            // It may have ended just now.
            let _ = child.kill();
            let _ = child.wait();
            return Outcome::Lost("it does not end".to_owned());
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let output = child.wait_with_output().expect("its output can be read");
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find_map(|line| line.strip_prefix("seed "));
    let found = line.and_then(|line| line.split_once(':'));
    match (status.code(), found) {
        (Some(0), _) => Outcome::Unfound,
        (Some(1), Some((seed, how))) => match seed.parse() {
            Ok(seed) => Outcome::Found(seed, format!("seed {seed}:{how}")),
            Err(_) => Outcome::Lost(text.into_owned()),
        },
        _ => Outcome::Lost(format!("{status}")),
    }
}
