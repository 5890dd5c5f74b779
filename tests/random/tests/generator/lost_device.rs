//! Devices that a case ends: it is named, nothing is run after it, and it is made smaller where each
//! try has a device of its own.

use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use kiln_jit_core::codegen::OptLevel;
use kiln_jit_core::hook::HookSet;
use kiln_jit_core::runtime::cuda::CudaContext;
use kiln_random::gpu::Gpu;
use kiln_random::visit::{self, Afresh, Device, Failed, Report, Verdict, Visit};
use kiln_random::{Budget, Case, InterpreterRunner, Runner as _, generate};

use super::fake::Fake;

/// The interpreter, until it has run the case of this seed, or one like it.
struct Fragile {
    ends: fn(&Case) -> bool,
    gone: Mutex<bool>,
}

impl Fragile {
    fn new(ends: fn(&Case) -> bool) -> Fragile {
        Fragile {
            ends,
            gone: Mutex::new(false),
        }
    }
}

impl Device for Fragile {
    fn run(&self, case: &Case) -> Result<Vec<Vec<u8>>, Failed> {
        let mut gone = self.gone.lock().unwrap();
        if *gone {
            return Err(Failed::Gone);
        }
        *gone = (self.ends)(case);
        match *gone {
            true => Err(Failed::Ended("illegal instruction".to_owned())),
            false => InterpreterRunner.run(case).map_err(Failed::Here),
        }
    }
}

fn small(seed: u64) -> Case {
    let budget = Budget {
        instructions: 20,
        ..Budget::default()
    };
    generate(seed, &budget)
}

fn visit(device: &dyn Device, count: u64) -> Report {
    let visit = Visit {
        device,
        limit: Duration::MAX,
        failures: usize::MAX,
        tell: &|_| (),
    };
    visit.run(0..count, &|seed| (format!("seed {seed}"), small(seed)))
}

#[test]
fn the_case_that_ends_a_device_is_named_and_the_last() {
    let device = Fragile::new(|case| case.seed == 20);
    let report = visit(&device, 60);
    let ended = report.ended.expect("a case ends the device");
    assert_eq!((ended.name.as_str(), ended.case.seed), ("seed 20", 20));
    assert_eq!(ended.why, "illegal instruction");
    // What comes after is not said to differ.
    assert!(report.differing.is_empty(), "{:?}", report.differing);
    assert!(report.passed < 59, "{} passed", report.passed);
}

#[test]
fn all_cases_pass_on_a_device_that_stays() {
    let report = visit(&Fragile::new(|_| false), 20);
    assert!(report.ended.is_none() && report.differing.is_empty());
    assert_eq!(report.passed, 20);
}

/// The fake driver runs no kernel, so those before the one that ends the context differ.
#[test]
fn a_cuda_context_that_a_kernel_ended_is_left_alone() {
    let fake = Fake::new();
    let context = CudaContext::with_driver(fake.open().unwrap(), 0).unwrap();
    let gpu = Gpu::new(context, OptLevel::O0, HookSet::new());
    fake.sticky_after(3, 715);
    let report = visit(&gpu, 30);
    let ended = report.ended.expect("a kernel ends the context");
    assert!(ended.why.contains("(715: "), "{}", ended.why);
    assert!(ended.why.contains("hooks "), "{}", ended.why);
    assert_eq!(report.passed + report.differing.len() as u64, 2);
    let calls = fake.calls();
    assert_eq!(Verdict::of(&gpu, &small(30)), Verdict::Gone);
    assert_eq!(fake.calls(), calls);
}

fn has_atomics(case: &Case) -> bool {
    case.to_text().contains("atomic")
}

/// A case with atomics.
fn with_atomics() -> Case {
    let mut cases = (0..1000).map(small);
    cases.find(has_atomics).expect("some case has atomics")
}

/// A try that ends the device says nothing about those after it.
#[test]
fn a_reduction_stops_where_the_device_ends() {
    let device = Fragile::new(has_atomics);
    let case = with_atomics();
    let instructions = case.instructions();
    let left = visit::reduced(&device, case, Duration::MAX);
    assert_eq!(left.instructions(), instructions);
}

/// Takes a case for one that ends the device if a command succeeds with its file.
fn afresh(name: &str, command: &[&str]) -> Afresh {
    let file = format!("{name}-{}.kir", std::process::id());
    Afresh {
        program: Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/generator/replay.sh"),
        options: command.iter().map(|&word| word.to_owned()).collect(),
        file: Path::new(env!("CARGO_TARGET_TMPDIR")).join(file),
        limit: Duration::from_secs(60),
    }
}

#[test]
fn what_ends_a_device_is_reduced_in_processes_of_its_own() {
    let case = with_atomics();
    let before = case.instructions();
    let afresh = afresh("ends", &["grep", "-q", "atomic"]);
    let small = afresh.reduced(case, Duration::MAX).unwrap();
    let small = small.expect("it ends the device alone");
    assert!(has_atomics(&small));
    assert!(
        small.instructions() <= 8,
        "{before} -> {}\n{}",
        small.instructions(),
        small.to_text()
    );
}

#[test]
fn what_ends_a_device_only_after_others_is_not_reduced() {
    let afresh = afresh("stays", &["false"]);
    let kept = afresh.reduced(with_atomics(), Duration::MAX).unwrap();
    assert!(kept.is_none());
}

#[test]
fn a_process_that_does_not_end_is_ended() {
    let mut afresh = afresh("hangs", &["exec", "tail", "-f"]);
    afresh.limit = Duration::from_millis(50);
    let kept = afresh.reduced(with_atomics(), Duration::MAX).unwrap();
    assert!(kept.is_none());
}

#[test]
fn a_program_that_is_not_there_is_an_error() {
    let mut afresh = afresh("missing", &["true"]);
    afresh.program = "/nonexistent/random-kernels".into();
    let error = afresh.reduced(with_atomics(), Duration::MAX).unwrap_err();
    assert!(
        error.starts_with("/nonexistent/random-kernels: "),
        "{error}"
    );
}
