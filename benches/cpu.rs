//! Kernels on `Device::cpu()` beside the same kernels of OpenCL, plain C and numba, measured in one
//! run, in turn.
//!
//! `cargo xtask bench-peers` sets the peers up; one that is not there is named and left out. Then
//! `cargo bench --bench cpu` measures twice: the CPU time of a process on one pinned core, which
//! other work on the machine disturbs least, and the wall time on two cores. Every kernel and every
//! peer must compute what a plain Rust loop computes before it is timed. Options:
//!
//! - `--kernel NAME`, `--peer NAME`: only these; both may be given several times. `--kernel functions` are all
//!   mathematical functions, `--peer none` leaves all peers out.
//! - `--quick`: small sizes and few runs, to try the bench itself; goals mean nothing then.
//! - `--unchecked`: builds our kernels without bounds checks.
//! - `--peers-only`: leaves our kernels out.
//! - `--one-core`: leaves out the second measurement.
//! - `--instructions`: times nothing, and counts the instructions that our kernels execute, at the small
//!   sizes.

#[path = "cpu/cases.rs"]
mod cases;
#[path = "cpu/clock.rs"]
mod clock;
#[path = "cpu/functions.rs"]
mod functions;
mod instructions;
#[path = "cpu/kernels.rs"]
mod kernels;
#[path = "cpu/options.rs"]
mod options;
#[path = "cpu/ours.rs"]
mod ours;
#[path = "cpu/peers.rs"]
mod peers;
#[path = "cpu/reference.rs"]
mod reference;
mod report;
#[path = "../tests/kernels/mod.rs"]
mod shared;
#[path = "cpu/table.rs"]
mod table;

use std::path::Path;
use std::process::{Command, ExitCode};

use cases::{CASES, Case};
use clock::Sample;
use options::{Options, PHASE_VARIABLE, Phase, USAGE};
use ours::Workload;
use peers::{PEERS, Peer};
use reference::Expected;
use table::{Figure, Table};

fn main() -> ExitCode {
    let options = match Options::read(lexopt::Parser::from_env()) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("cpu: {error}; {USAGE}");
            return ExitCode::FAILURE;
        }
    };
    let good = match Phase::of_this_process() {
        _ if options.instructions => count_instructions(&options),
        Some(phase) => measure(&options, phase),
        None => start_phases(&options),
    };
    if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Counts the instructions of our kernels at the small sizes. False if one cannot be run.
fn count_instructions(options: &Options) -> bool {
    let mut good = true;
    let checks = options.checks();
    let wanted = CASES.iter().filter(|case| options.wants_kernel(case));
    // What compiles starts threads, and a thread that is being started cannot be stepped through.
    for case in wanted.filter(|case| case.kernel != "compile") {
        let counted = ours::workload(case.kernel, case.quick, checks).and_then(|workload| {
            let Some(mut workload) = workload else {
                return Ok(None);
            };
            // The first run compiles.
            workload.run()?;
            let counted = instructions::Counted::CompiledCode;
            instructions::count(counted, &mut || workload.run()).map(Some)
        });
        match counted {
            Ok(Some(count)) => println!("{:16} {count:12} instructions", case.name),
            Ok(None) => {}
            Err(error) => {
                eprintln!("{}: {error}", case.name);
                good = false;
            }
        }
    }
    good
}

/// Starts this program once for each phase, on the cores of the phase.
fn start_phases(options: &Options) -> bool {
    let cores = options::allowed_cores();
    let mut good = start(Phase::OneCore, &cores);
    match cores.len() {
        _ if options.one_core => {}
        1 => println!("two cores: left out, this process may use one only"),
        _ => good &= start(Phase::TwoCores, &cores),
    }
    good
}

/// Starts this program for a phase and waits for it.
fn start(phase: Phase, cores: &[usize]) -> bool {
    let Ok(program) = std::env::current_exe() else {
        eprintln!("cpu: this program does not know where it is");
        return false;
    };
    let list: Vec<String> = cores.iter().map(usize::to_string).collect();
    let list = list[..phase.threads().min(list.len())].join(",");
    let pins = Command::new("taskset").arg("--version").output().is_ok();
    let mut command = if pins {
        let mut command = Command::new("taskset");
        command.args(["-c", &list]).arg(program);
        command
    } else {
        println!("taskset is not there (Debian and Ubuntu: util-linux): nothing is pinned");
        Command::new(program)
    };
    command.args(std::env::args().skip(1));
    command.env(PHASE_VARIABLE, phase.name());
    match command.status() {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("cpu: cannot start the measurement: {error}");
            false
        }
    }
}

/// Measures all cases and prints the report. False if a result of ours is wrong.
fn measure(options: &Options, phase: Phase) -> bool {
    let folder = peers::folder();
    let device = kiln::Device::cpu();
    println!("\n== {}; kiln on {}", phase.describe(), device.info().name);
    for (name, what) in PEERS.iter().filter(|(name, _)| options.wants_peer(name)) {
        println!("   {name}: {what}");
    }
    let mut table = Table::new(phase);
    let mut good = true;
    for case in CASES.iter().filter(|case| options.wants_kernel(case)) {
        let size = options.size(case);
        table.case(case, size);
        let mut runners = runners(case, size, options, phase, folder.as_deref());
        good &= !runners.iter().any(Runner::is_wrong);
        take_turns(&mut runners, options, phase);
        for runner in runners {
            table.figure(case, size, runner.into_figure(phase));
        }
    }
    table.finish(options.quick);
    good
}

/// What runs a kernel.
enum Engine {
    Ours(Box<dyn Workload>),
    Peer(Box<Peer>),
}

/// One of those that take turns at a kernel.
struct Runner {
    name: &'static str,
    engine: Result<Engine, String>,
    times: u32,
    samples: Vec<Sample>,
}

impl Runner {
    /// A runner that is timed, or named as left out.
    fn new(name: &'static str, engine: Result<Engine, String>) -> Runner {
        Runner {
            name,
            engine,
            times: 1,
            samples: Vec::new(),
        }
    }

    /// Whether it is ours and cannot be timed.
    fn is_wrong(&self) -> bool {
        self.name.starts_with("kiln") && self.engine.is_err()
    }

    /// Times some runs; an engine that fails is out.
    fn sample(&mut self) -> Option<Sample> {
        let result = match self.engine.as_mut().ok()? {
            Engine::Ours(workload) => workload.sample(self.times).map_err(|e| e.to_string()),
            Engine::Peer(peer) => peer.sample(self.times),
        };
        match result {
            Ok(sample) => Some(sample),
            Err(message) => {
                self.engine = Err(message);
                None
            }
        }
    }

    /// Chooses how many runs a sample has.
    fn calibrate(&mut self, target: f64, phase: Phase) {
        // The first run warms up, the second is a measure; a slow kernel needs no second.
        for _ in 0..2 {
            if let Some(sample) = self.sample() {
                let once = phase.of(sample).max(1e-7);
                self.times = (target / once).ceil().clamp(1.0, 10_000.0) as u32;
                if once > 1.0 {
                    return;
                }
            }
        }
    }

    /// Whether it has had enough time for its figure not to change.
    fn is_done(&self) -> bool {
        let spent = self.samples.iter().map(|s| s.wall).sum::<f64>() * f64::from(self.times);
        self.samples.len() >= 3 && spent > 8.0
    }

    fn into_figure(self, phase: Phase) -> Figure {
        let mut times: Vec<f64> = self.samples.iter().map(|&s| phase.of(s)).collect();
        times.sort_by(f64::total_cmp);
        Figure {
            name: self.name,
            times: match times.first() {
                Some(&first) if first <= 0.0 => Err("it took no time to measure".to_owned()),
                _ => self.engine.map(|_| times),
            },
        }
    }
}

/// Makes all that run a kernel: ours first, then the peers. What computes something wrong is not
/// timed.
fn runners(
    case: &Case,
    size: usize,
    options: &Options,
    phase: Phase,
    folder: Option<&Path>,
) -> Vec<Runner> {
    let want = reference::expected(case.kernel, size);
    let checks = options.checks();
    let mut runners = Vec::new();
    if !options.peers_only {
        match checked(ours::workload(case.kernel, size, checks), &want).transpose() {
            Some(engine) => runners.push(Runner::new("kiln", engine)),
            None => println!("  kiln cannot express it yet"),
        }
        let arrays = checked(ours::array_workload(case.kernel, size), &want).transpose();
        runners.extend(arrays.map(|engine| Runner::new("kiln arrays", engine)));
    }
    for &(name, _) in PEERS.iter().filter(|(name, _)| options.wants_peer(name)) {
        let started = Peer::start(folder, name, case.kernel, (size, phase.threads()));
        let engine = started.transpose().map(|started| {
            let (peer, sum) = started?;
            want.check_sum(sum)?;
            Ok(Engine::Peer(Box::new(peer)))
        });
        runners.extend(engine.map(|engine| Runner::new(name, engine)));
    }
    runners
}

/// Runs a workload of ours once and keeps it if its results are right.
fn checked(
    made: ours::Outcome<Option<Box<dyn Workload>>>,
    want: &Expected,
) -> Result<Option<Engine>, String> {
    let first_run = |made: ours::Outcome<Option<Box<dyn Workload>>>| -> ours::Outcome<_> {
        let Some(mut workload) = made? else {
            return Ok(None);
        };
        workload.run()?;
        want.check(&workload.results()?)?;
        Ok(Some(Engine::Ours(workload)))
    };
    first_run(made).map_err(|e| e.to_string())
}

/// Lets every runner take a sample, again and again.
fn take_turns(runners: &mut [Runner], options: &Options, phase: Phase) {
    let (rounds, target) = match options.quick {
        true => (3, 0.005),
        false => (9, 0.04),
    };
    for runner in &mut *runners {
        runner.calibrate(target, phase);
    }
    for _ in 0..rounds {
        for runner in runners.iter_mut().filter(|runner| !runner.is_done()) {
            if let Some(sample) = runner.sample() {
                runner.samples.push(sample);
            }
        }
    }
}
