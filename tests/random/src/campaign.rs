//! Many random kernels on all cores: the interpreter against the compiled backend, or against code
//! for GPUs on this CPU.
//!
//! On the compiled backend each kernel runs at one width, which its seed chooses, and some at all
//! widths. Compiling takes most of the time, so that this is what counts. What is compiled has been
//! through none of the standard hooks, one or all, as the seed chooses; the interpreter runs it, too. The
//! reference is always the kernel as it was generated.

use std::fmt;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use kiln_jit_core::runtime::BlockOrder;
use kiln_jit_core::target::Barriers;

use crate::random::Random;
use crate::run::{
    Difference, Hooked, HostRunner, InterpreterRunner, Mismatch, OnHostRunner, ReversedRunner,
    Runner, ShuffledRunner, WIDTHS, difference,
};
use crate::{Budget, Case, Coverage, coverage, generate, hook_sets, hooks_of, reduce, sound};

/// When a case counts as stuck, where no limit is set.
const STUCK: Duration = Duration::from_secs(60);

/// Which kernels to run, and how.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// How large the kernels are.
    pub budget: Budget,
    /// The first seed.
    pub seed: u64,
    /// How many kernels.
    pub count: u64,
    /// How long, at most.
    pub limit: Option<Duration>,
    /// Every kernel whose number is a multiple of this runs at all widths, with its threads in the
    /// opposite order, and with its blocks in any.
    pub all_widths: u64,
    /// Code for GPUs on this CPU is compared in place of the compiled backend.
    pub on_host: Option<OnHostRunner>,
    /// Whether to check also that each kernel is sound, which all should be.
    pub sound: bool,
    /// How many failures are enough.
    pub failures: usize,
    /// Whether constructs are counted.
    pub coverage: bool,
    /// How long one kernel may run. Nothing can end it, so that one that runs longer is told as a failure and the process
    /// ends; `None`: it is told, and runs on.
    pub kernel_limit: Option<Duration>,
}

impl Campaign {
    /// `count` kernels from `seed` on.
    pub fn new(seed: u64, count: u64) -> Campaign {
        Campaign {
            budget: Budget::default(),
            seed,
            count,
            limit: None,
            all_widths: 10,
            on_host: None,
            sound: false,
            failures: 10,
            coverage: true,
            kernel_limit: None,
        }
    }
}

/// A kernel on which runs disagree, or that is not what it should be.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What it was generated from.
    pub seed: u64,
    /// What is wrong.
    pub mismatch: Mismatch,
    /// The runner it was found with; `None`: it is not about what is compared.
    found_with: Option<Compared>,
}

/// What is compared with the interpreter.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Compared {
    /// The compiled backend, with vectors of this many lanes.
    Lanes(u32),
    /// Code for GPUs on this CPU.
    OnHost,
}

/// What came of a campaign.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What the kernels have in them.
    pub coverage: Coverage,
    /// How many kernels were run.
    pub kernels: u64,
    /// How many times a kernel was compiled and compared.
    pub comparisons: u64,
    /// What was found, by seed.
    pub failures: Vec<Failure>,
    /// How long it took.
    pub elapsed: Duration,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.elapsed.as_secs_f64();
        write!(
            f,
            "{} kernels, {} comparisons, {} failures in {seconds:.1} s: {:.0} kernels a minute",
            self.kernels,
            self.comparisons,
            self.failures.len(),
            self.kernels as f64 * 60.0 / seconds.max(0.001)
        )
    }
}

/// What the threads of a campaign share.
struct Shared<'c> {
    campaign: &'c Campaign,
    started: Instant,
    next: AtomicU64,
    enough: AtomicBool,
    report: Mutex<Report>,
    /// For each thread the seed it works on, and since when.
    busy: Vec<Mutex<Option<(u64, Instant)>>>,
}

/// What is behind a lock. A thread that panics ends the campaign, so nobody looks at what it left.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Campaign {
    /// Runs the kernels on all cores.
    ///
    /// # Panics
    /// If the generator does, which is a bug of it.
    pub fn run(&self) -> Report {
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        let shared = Shared {
            campaign: self,
            started: Instant::now(),
            next: AtomicU64::new(0),
            enough: AtomicBool::new(false),
            report: Mutex::default(),
            busy: (0..threads).map(|_| Mutex::default()).collect(),
        };
        thread::scope(|scope| {
            let workers: Vec<_> = (0..threads)
                .map(|n| {
                    scope.spawn({
                        let shared = &shared;
                        move || shared.work(n)
                    })
                })
                .collect();
            while !workers.iter().all(thread::ScopedJoinHandle::is_finished) {
                shared.report_stuck();
                thread::sleep(Duration::from_millis(20));
            }
        });
        let elapsed = shared.started.elapsed();
        let report = shared.report.into_inner();
        let mut report = report.unwrap_or_else(PoisonError::into_inner);
        report.elapsed = elapsed;
        report.failures.sort_by_key(|failure| failure.seed);
        report
    }

    /// Compares the runs of one case; gives the number of comparisons, too.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self, case: &Case) -> (u64, Result<(), Failure>) {
        let everywhere = (case.seed - self.seed).is_multiple_of(self.all_widths.max(1));
        let failed = |runner: &dyn Runner, difference, found_with| Failure {
            seed: case.seed,
            mismatch: Mismatch {
                runner: runner.name(),
                difference,
            },
            found_with,
        };
        let not_sound = |why: String| failed(&InterpreterRunner, Difference::Failed(why), None);
        if self.sound
            && let Err(why) = sound(case)
        {
            return (0, Err(not_sound(why)));
        }
        let expected = match InterpreterRunner.run(case) {
            Ok(expected) => expected,
            Err(why) => return (0, Err(not_sound(why))),
        };
        let mut count = 0;
        let mut compare = |runner: &dyn Runner, compared: Option<Compared>| {
            count += u64::from(compared.is_some());
            let difference = match runner.run(case) {
                Ok(found) => difference(case, &expected, &found),
                Err(why) => Some(Difference::Failed(why)),
            };
            difference.map_or(Ok(()), |difference| {
                Err(failed(runner, difference, compared))
            })
        };
        let mut result = match everywhere {
            true => compare(&ReversedRunner, None).and_then(|()| compare(&ShuffledRunner, None)),
            false => Ok(()),
        };
        let sets = match everywhere {
            true => hook_sets(),
            false => vec![hooks_of(case)],
        };
        for hooks in sets {
            let runner = Hooked {
                hooks,
                runner: InterpreterRunner,
            };
            result = result.and_then(|()| compare(&runner, None));
        }
        let compared = match self.on_host {
            Some(_) => vec![Compared::OnHost],
            None => widths(case, everywhere)
                .into_iter()
                .map(Compared::Lanes)
                .collect(),
        };
        for compared in compared {
            let runner = self.runner(case, compared);
            result = result.and_then(|()| compare(&*runner, Some(compared)));
        }
        (count, result)
    }

    fn runner(&self, case: &Case, compared: Compared) -> Box<dyn Runner> {
        match compared {
            Compared::Lanes(lanes) => Box::new(Hooked {
                hooks: hooks_of(case),
                runner: HostRunner {
                    barriers: barriers(case),
                    order: block_order(case),
                    ..HostRunner::new(lanes)
                },
            }),
            Compared::OnHost => Box::new(self.on_host.clone().unwrap_or_default()),
        }
    }

    /// A failing case, made small in at most `limit`.
    pub fn reduced(&self, failure: &Failure, limit: Duration) -> Case {
        let case = generate(failure.seed, &self.budget);
        let started = Instant::now();
        // A generated case is sound; if this one is not, that is what is wrong with it.
        let was_sound = sound(&case).is_ok();
        reduce(case, &|smaller| {
            if started.elapsed() > limit {
                return false;
            }
            let failing = match failure.found_with {
                Some(compared) => differs(smaller, &*self.runner(smaller, compared)),
                None => {
                    let failure = self.check(smaller).1;
                    failure.is_err_and(|f| f.found_with.is_none())
                }
            };
            failing && sound(smaller).is_ok() == was_sound
        })
    }
}

/// What happens at barriers: every third kernel runs as coroutines.
fn barriers(case: &Case) -> Option<Barriers> {
    case.seed.is_multiple_of(3).then_some(Barriers::Coroutines)
}

/// The order in which blocks begin: every other kernel has one of its own, and its blocks run one by one.
fn block_order(case: &Case) -> BlockOrder {
    match case.seed.is_multiple_of(2) {
        true => BlockOrder::Shuffled(case.seed),
        false => BlockOrder::Increasing,
    }
}

/// Whether a runner gives something else.
fn differs(case: &Case, runner: &dyn Runner) -> bool {
    let Ok(expected) = InterpreterRunner.run(case) else {
        return false;
    };
    match runner.run(case) {
        Ok(found) => difference(case, &expected, &found).is_some(),
        Err(_) => true,
    }
}

/// The widths that a case is run with.
fn widths(case: &Case, everywhere: bool) -> Vec<u32> {
    match (case.uses_warps(), everywhere) {
        (true, _) => vec![32],
        (false, true) => WIDTHS.to_vec(),
        // The generator has drawn from the seed itself.
        (false, false) => vec![Random::new(!case.seed).of(&WIDTHS)],
    }
}

impl Shared<'_> {
    /// Runs kernels until there are no more.
    fn work(&self, thread: usize) {
        let campaign = self.campaign;
        let (mut covered, mut kernels, mut comparisons) = (Coverage::default(), 0, 0);
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let late = campaign.limit.is_some_and(|l| self.started.elapsed() > l);
            if number >= campaign.count || late || self.enough.load(Ordering::Relaxed) {
                break;
            }
            let seed = campaign.seed.wrapping_add(number);
            *lock(&self.busy[thread]) = Some((seed, Instant::now()));
            let case = generate(seed, &campaign.budget);
            if campaign.coverage {
                covered.merge(&coverage(&case));
            }
            let (compared, result) = campaign.check(&case);
            kernels += 1;
            comparisons += compared;
            if let Err(failure) = result {
                let failures = &mut lock(&self.report).failures;
                failures.push(failure);
                let enough = failures.len() >= campaign.failures;
                self.enough.fetch_or(enough, Ordering::Relaxed);
            }
        }
        *lock(&self.busy[thread]) = None;
        let mut report = lock(&self.report);
        report.coverage.merge(&covered);
        report.kernels += kernels;
        report.comparisons += comparisons;
    }

    /// Says which kernels do not end.
    fn report_stuck(&self) {
        let limit = self.campaign.kernel_limit;
        for busy in &self.busy {
            let mut busy = lock(busy);
            if let Some((seed, since)) = *busy
                && since.elapsed() > limit.unwrap_or(STUCK)
            {
                if limit.is_some() {
                    println!("seed {seed}: it does not end");
                    std::process::exit(1);
                }
                eprintln!("seed {seed} has been running for {} s", STUCK.as_secs());
                *busy = None;
            }
        }
    }
}

impl Failure {
    /// Writes the reduced case to a folder, or prints it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep(&self, case: &Case, folder: Option<&PathBuf>) -> Result<(), String> {
        let text = case.to_text();
        let Some(folder) = folder else {
            println!("{text}");
            return Ok(());
        };
        let path = folder.join(format!("{}.kir", self.seed));
        let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, text));
        written.map_err(|e| format!("{}: {e}", path.display()))?;
        println!("written to {}", path.display());
        Ok(())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}: {}", self.seed, self.mismatch)
    }
}
