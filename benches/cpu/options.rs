//! The command line of `benches/cpu.rs`, and the two measurements it makes.

use std::ffi::OsString;

use lexopt::prelude::*;

use crate::cases::{CASES, Case};
use crate::clock::Sample;
use crate::functions;
use crate::ours::Checks;
use crate::peers::PEERS;

/// What can be said on the command line.
pub const USAGE: &str = "options are --kernel NAME, --peer NAME, --quick, --unchecked, --peers-only, --one-core, \
                         --instructions";

/// Stands for the kernels of all mathematical functions.
const FUNCTIONS: &str = "functions";

/// Names the phase to the process that measures it.
pub const PHASE_VARIABLE: &str = "KILN_BENCH_PHASE";

/// A measurement.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// CPU time on one pinned core.
    OneCore,
    /// Wall time on two cores.
    TwoCores,
}

impl Phase {
    /// The phase that this process was started for.
    pub fn of_this_process() -> Option<Phase> {
        let name = std::env::var(PHASE_VARIABLE).ok()?;
        [Phase::OneCore, Phase::TwoCores]
            .into_iter()
            .find(|phase| phase.name() == name)
    }

    /// Its name in the JSON lines.
    pub fn name(self) -> &'static str {
        match self {
            Phase::OneCore => "one-core",
            Phase::TwoCores => "two-cores",
        }
    }

    /// What it measures, for people.
    pub fn describe(self) -> &'static str {
        match self {
            Phase::OneCore => "one pinned core, CPU time of the process",
            Phase::TwoCores => "two cores, wall time",
        }
    }

    /// Cores, and threads of a peer.
    pub fn threads(self) -> usize {
        match self {
            Phase::OneCore => 1,
            Phase::TwoCores => 2,
        }
    }

    /// The part of a sample that it measures.
    pub fn of(self, sample: Sample) -> f64 {
        match self {
            Phase::OneCore => sample.cpu,
            Phase::TwoCores => sample.wall,
        }
    }
}

/// The command line.
#[derive(Clone, Debug, Default)]
pub struct Options {
    kernels: Vec<String>,
    peers: Vec<String>,
    /// Small sizes, few runs.
    pub quick: bool,
    /// Our kernels without bounds checks.
    pub unchecked: bool,
    /// Without our kernels.
    pub peers_only: bool,
    /// Without the second phase.
    pub one_core: bool,
    /// Instructions instead of times.
    pub instructions: bool,
}

impl Options {
    /// Reads the command line.
    ///
    /// # Errors
    /// What is not understood, and what there is instead.
    pub fn read(mut args: lexopt::Parser) -> Result<Options, lexopt::Error> {
        let mut options = Options::default();
        while let Some(arg) = args.next()? {
            match arg {
                Long("kernel") => {
                    let names = CASES.iter().map(|case| case.name).chain([FUNCTIONS]);
                    options.kernels.push(one_of(args.value()?, names)?);
                }
                Long("peer") => {
                    let names = PEERS.iter().map(|&(name, _)| name).chain(["none"]);
                    options.peers.push(one_of(args.value()?, names)?);
                }
                Long("quick") => options.quick = true,
                Long("unchecked") => options.unchecked = true,
                Long("peers-only") => options.peers_only = true,
                Long("one-core") => options.one_core = true,
                Long("instructions") => options.instructions = true,
                // Cargo says that this is a bench.
                Long("bench") => {}
                _ => return Err(arg.unexpected()),
            }
        }
        Ok(options)
    }

    /// Whether a kernel is to be measured.
    pub fn wants_kernel(&self, case: &Case) -> bool {
        let is_function = functions::find(case.kernel).is_some();
        let wanted = |name: &String| name == case.name || name == FUNCTIONS && is_function;
        self.kernels.is_empty() || self.kernels.iter().any(wanted)
    }

    /// How our kernels are built.
    pub fn checks(&self) -> Checks {
        if self.unchecked {
            Checks::Off
        } else {
            Checks::On
        }
    }

    /// Whether a peer is to be measured.
    pub fn wants_peer(&self, name: &str) -> bool {
        self.peers.is_empty() || self.peers.iter().any(|peer| peer == name)
    }

    /// The size of a case.
    pub fn size(&self, case: &Case) -> usize {
        if self.quick { case.quick } else { case.size }
    }
}

/// The value of an option that takes one of some names.
fn one_of<'a>(
    value: OsString,
    names: impl Iterator<Item = &'a str>,
) -> Result<String, lexopt::Error> {
    let (value, names) = (value.string()?, names.collect::<Vec<_>>());
    match names.contains(&value.as_str()) {
        true => Ok(value),
        false => Err(format!("there is no `{value}`; there are: {}", names.join(", ")).into()),
    }
}

/// The cores that this process may run on; core 0 where the system does not say.
pub fn allowed_cores() -> Vec<usize> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let cores = list.map(cores_in).unwrap_or_default();
    if cores.is_empty() { vec![0] } else { cores }
}

/// The numbers of a list such as `0-3,8`.
fn cores_in(list: &str) -> Vec<usize> {
    let ranges = list.trim().split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse().ok()?..=last.parse().ok()?)
    });
    ranges.flatten().collect()
}
