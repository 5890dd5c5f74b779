//! Many cases on a device that one of them may end, as an illegal instruction ends a CUDA context.
//!
//! Nothing runs there after that, so whatever would be compared next says nothing about its kernel: a
//! visit stops, and names the case that did it. Which one that was can be told since one case runs at
//! a time. What ends a device is made smaller in processes of its own ([`Afresh`]).

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::run::{difference, reference};
use crate::{Case, reduce, sound};

/// The status of a process in which a case has ended the device.
pub const ENDED: i32 = 3;

/// How often a process of its own is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// Something that executes cases until one of them ends it.
pub trait Device: Sync {
    /// The buffers as they are after the launch.
    ///
    /// # Errors
    /// What went wrong, and whether the device is still there.
    fn run(&self, case: &Case) -> Result<Vec<Vec<u8>>, Failed>;
}

/// Why a case gave nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failed {
    /// It could not be run, or had a fault; the device is as it was.
    Here(String),
    /// It ended the device.
    Ended(String),
    /// An earlier one did, so it was not run.
    Gone,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failed::Here(why) | Failed::Ended(why) => f.write_str(why),
            Failed::Gone => f.write_str("the device has ended"),
        }
    }
}

/// What is wrong with a case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Nothing.
    Same,
    /// It gives something else than the interpreter, or an error.
    Differs(String),
    /// It ended the device.
    Ended(String),
    /// It was not run, as an earlier one has ended the device.
    Gone,
}

impl Verdict {
    /// What a device makes of a case beside what the interpreter does.
    pub fn of(device: &dyn Device, case: &Case) -> Verdict {
        let expected = match reference().run(case) {
            Ok(expected) => expected,
            Err(why) => return Verdict::Differs(format!("interpreter: {why}")),
        };
        match device.run(case) {
            Ok(found) => difference(case, &expected, &found)
                .map_or(Verdict::Same, |d| Verdict::Differs(format!("{d:?}"))),
            Err(Failed::Here(why)) => Verdict::Differs(why),
            Err(Failed::Ended(why)) => Verdict::Ended(why),
            Err(Failed::Gone) => Verdict::Gone,
        }
    }
}

/// A case with which something is wrong.
#[derive(Clone, Debug)]
pub struct Wrong {
    /// Which one.
    pub name: String,
    /// The case.
    pub case: Case,
    /// What is wrong.
    pub why: String,
}

/// What came of many cases.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How many gave the same.
    pub passed: u64,
    /// Those that gave something else.
    pub differing: Vec<Wrong>,
    /// The one that ended the device, after which none was run.
    pub ended: Option<Wrong>,
}

/// Many cases on a device, compiled on all cores.
pub struct Visit<'a> {
    /// The device.
    pub device: &'a dyn Device,
    /// How long it may take; a case that has begun is finished.
    pub limit: Duration,
    /// How many cases that differ are enough.
    pub failures: usize,
    /// Is told what is wrong as soon as it is known.
    pub tell: &'a (dyn Fn(&Wrong) + Sync),
}

impl Visit<'_> {
    /// Runs the cases with these numbers, each with what it is called.
    ///
    /// # Panics
    /// If `case` does.
    pub fn run(
        &self,
        numbers: Range<u64>,
        case: &(dyn Fn(u64) -> (String, Case) + Sync),
    ) -> Report {
        let (started, over) = (Instant::now(), AtomicBool::new(false));
        let next = AtomicU64::new(numbers.start);
        let report = Mutex::new(Report::default());
        let work = || {
            while !over.load(Ordering::Relaxed) && started.elapsed() < self.limit {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if !numbers.contains(&number) {
                    return;
                }
                let (name, case) = case(number);
                let verdict = Verdict::of(self.device, &case);
                let mut report = report.lock().unwrap_or_else(PoisonError::into_inner);
                let enough = report.add(verdict, name, case, self.tell) >= self.failures;
                over.fetch_or(enough || report.ended.is_some(), Ordering::Relaxed);
            }
        };
        let cores = thread::available_parallelism().map_or(4, usize::from);
        let threads = (numbers.end - numbers.start).min(cores as u64);
        thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
        report.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Report {
    /// Counts a case; gives how many differ.
    fn add(&mut self, verdict: Verdict, name: String, case: Case, tell: &dyn Fn(&Wrong)) -> usize {
        let wrong = |why| {
            let wrong = Wrong { name, case, why };
            tell(&wrong);
            wrong
        };
        match verdict {
            Verdict::Same => self.passed += 1,
            Verdict::Differs(why) => self.differing.push(wrong(why)),
            Verdict::Ended(why) => self.ended = Some(wrong(why)),
            Verdict::Gone => {}
        }
        self.differing.len()
    }
}

/// The smallest case that still differs, of those found in time. A try that ends the device is not one,
/// and none comes after it.
pub fn reduced(device: &dyn Device, case: Case, limit: Duration) -> Case {
    let started = Instant::now();
    reduce(case, &|case: &Case| {
        started.elapsed() < limit
            && sound(case).is_ok()
            && matches!(Verdict::of(device, case), Verdict::Differs(_))
    })
}

/// Cases on devices that no other has used: a program is called with `--replay FILE` for each, and
/// returns [`ENDED`] where the case has ended the device.
#[derive(Clone, Debug)]
pub struct Afresh {
    /// The program.
    pub program: PathBuf,
    /// What else it is told.
    pub options: Vec<String>,
    /// Where the case is put for it.
    pub file: PathBuf,
    /// How long a process may take.
    pub limit: Duration,
}

impl Afresh {
    /// The smallest case that still ends the device, of those found in `limit`; `None` if the case
    /// itself does not, so that it takes what ran before it.
    ///
    /// # Errors
    /// The program cannot be started, or the file cannot be written.
    pub fn reduced(&self, case: Case, limit: Duration) -> Result<Option<Case>, String> {
        if !self.ends(&case)? {
            return Ok(None);
        }
        let started = Instant::now();
        let small = reduce(case, &|case: &Case| {
            started.elapsed() < limit && sound(case).is_ok() && self.ends(case) == Ok(true)
        });
        Ok(Some(small))
    }

    /// Whether a case ends the device.
    fn ends(&self, case: &Case) -> Result<bool, String> {
        let failed = |e: std::io::Error| format!("{}: {e}", self.program.display());
        let written = std::fs::write(&self.file, case.to_text());
        written.map_err(|e| format!("{}: {e}", self.file.display()))?;
        let mut command = Command::new(&self.program);
        command.arg("--replay").arg(&self.file).args(&self.options);
        let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = quiet.spawn().map_err(failed)?;
        let started = Instant::now();
        let status: Option<ExitStatus> = loop {
            match child.try_wait().map_err(failed)? {
                None if started.elapsed() < self.limit => thread::sleep(LOOK),
                status => break status,
            }
        };
        if status.is_none() {
            // It may have ended just now.
            let _ = child.kill();
            let _ = child.wait();
        }
        Ok(status.and_then(|status| status.code()) == Some(ENDED))
    }
}
