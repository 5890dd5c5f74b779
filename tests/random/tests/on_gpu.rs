//! Random kernels on a GPU beside the interpreter, bit by bit, with and without each standard hook.
//!
//! `random-kernels [--count N] [--seconds T] [--seed S] [--o0] [--out FOLDER] [--replay FILE]`: N kernels,
//! 2,000 if it is not said, as many of them as T seconds are enough for, compiled on all cores, after those
//! that once differed; what differs goes to FOLDER, reduced. A kernel that ends the CUDA context ends
//! the run, and is reduced in processes of its own. With `--planted` LLVM is told that no
//! other thread writes to slices, which has to be found. A program without a harness, so that it can
//! be carried to a machine that has a GPU and no Rust; there `--require` makes it fail without a CUDA
//! device.

#[path = "../../planted/mod.rs"]
mod planted;

use std::path::PathBuf;
use std::time::Duration;

use kiln_jit_core::codegen::OptLevel;
use kiln_jit_core::hook::HookSet;
use kiln_jit_core::runtime::cuda::CudaContext;
use kiln_random::gpu::Gpu;
use kiln_random::visit::{self, Afresh, ENDED, Report, Verdict, Visit, Wrong};
use kiln_random::{Budget, Case, generate, sound};
use planted::Planted;

/// Cases that a GPU, or a backend, once got wrong, by name.
const KNOWN: [(&str, &str); 15] = [
    (
        "acquire_without_use",
        include_str!("../../../docs/upstream/acquire_without_use.kir"),
    ),
    (
        "compared_maximum",
        include_str!("../../../docs/upstream/compared_maximum.kir"),
    ),
    (
        "float_stored_as_16_bits",
        include_str!("../../../docs/upstream/float_stored_as_16_bits.kir"),
    ),
    (
        "float_stored_as_8_bits",
        include_str!("../../../docs/upstream/float_stored_as_8_bits.kir"),
    ),
    (
        "lanes_that_end_after_a_vote",
        include_str!("../../../docs/upstream/lanes_that_end_after_a_vote.kir"),
    ),
    (
        "negated_16_bits",
        include_str!("../../../docs/upstream/negated_16_bits.kir"),
    ),
    (
        "negated_zero_of_a_bool",
        include_str!("../../../docs/upstream/negated_zero_of_a_bool.kir"),
    ),
    (
        "negated_zero_of_bf16",
        include_str!("../../../docs/upstream/negated_zero_of_bf16.kir"),
    ),
    (
        "sum_of_16_bits",
        include_str!("../../../docs/upstream/sum_of_16_bits.kir"),
    ),
    (
        "truth_as_float_beside_a_vote",
        include_str!("../../../docs/upstream/truth_as_float_beside_a_vote.kir"),
    ),
    (
        "condition_of_another_segment",
        include_str!("cases/condition_of_another_segment.kir"),
    ),
    (
        "conversion_rounds_once",
        include_str!("cases/conversion_rounds_once.kir"),
    ),
    (
        "partly_constant_vectors",
        include_str!("cases/partly_constant_vectors.kir"),
    ),
    (
        "variable_after_a_guard",
        include_str!("cases/variable_after_a_guard.kir"),
    ),
    (
        "variable_of_an_ended_warp",
        include_str!("cases/variable_of_an_ended_warp.kir"),
    ),
];

/// How many kernels that differ are enough.
const FAILURES: usize = 8;

/// How many of them are made smaller.
const REDUCED: usize = 3;

/// How long a kernel that differs is made smaller.
const REDUCTION: Duration = Duration::from_secs(25);

/// How long one that ends the context is, in processes that each open the device.
const REDUCTION_AFRESH: Duration = Duration::from_secs(180);

/// How long such a process may take.
const PROCESS: Duration = Duration::from_secs(30);

/// The case of a seed: one in four large, one full of operations of warps, one of blocks of all sizes.
fn case(seed: u64) -> Case {
    let mut budget = Budget::default();
    if seed % 16 == 4 {
        budget.pairs = 100;
    }
    match seed % 4 {
        1 => {
            budget.instructions = 150;
            budget.depth = 5;
        }
        2 => budget.warps = 100,
        3 => {
            budget.uniform_shared = true;
            budget.threads = 1024;
        }
        _ => {}
    }
    generate(seed, &budget)
}

/// What the program was told.
struct Args(Vec<String>);

impl Args {
    fn flag(&self, name: &str) -> bool {
        self.0.iter().any(|arg| arg == name)
    }

    fn value(&self, name: &str) -> Option<String> {
        let at = self.0.iter().position(|arg| arg == name)?;
        self.0.get(at + 1).cloned()
    }

    fn number(&self, name: &str, otherwise: u64) -> u64 {
        self.value(name).map_or(otherwise, |text| {
            text.parse()
                .unwrap_or_else(|_| panic!("{name}: `{text}` is no number"))
        })
    }

    /// What decides how a kernel is compiled.
    fn options(&self) -> Vec<String> {
        let all = ["--o0", "--planted"].into_iter();
        all.filter(|name| self.flag(name))
            .map(str::to_owned)
            .collect()
    }
}

/// Writes a case to a folder.
fn write(case: &Case, name: &str, folder: &str, note: &str) {
    let path = format!("{folder}/{}.kir", name.replace(' ', ""));
    match std::fs::write(&path, case.to_text()) {
        Ok(()) => println!("{path}: {} instructions{note}", case.instructions()),
        Err(error) => println!("{path}: {error}"),
    }
}

/// Writes a case that ended the context, reduced if it does so alone.
fn keep_ended(wrong: &Wrong, folder: &str, args: &Args) {
    let small = std::env::current_exe().map_err(|e| e.to_string());
    let small = small.and_then(|program| {
        let afresh = Afresh {
            program,
            options: args.options(),
            file: PathBuf::from(folder).join("try.kir"),
            limit: PROCESS,
        };
        let small = afresh.reduced(wrong.case.clone(), REDUCTION_AFRESH);
        let _ = std::fs::remove_file(&afresh.file);
        small
    });
    let (case, note) = match small {
        Ok(Some(small)) => (small, String::new()),
        Ok(None) => (
            wrong.case.clone(),
            ", not reduced: alone it does not end the context".to_owned(),
        ),
        Err(why) => (wrong.case.clone(), format!(", not reduced: {why}")),
    };
    write(&case, &wrong.name, folder, &note);
}

/// Writes what is wrong to a folder, reduced.
fn keep(gpu: &Gpu, report: &Report, folder: &str, args: &Args) {
    if let Err(error) = std::fs::create_dir_all(folder) {
        println!("{folder}: {error}");
    }
    for wrong in report.differing.iter().take(REDUCED) {
        let (case, name) = (wrong.case.clone(), &wrong.name);
        match report.ended {
            None => write(&visit::reduced(gpu, case, REDUCTION), name, folder, ""),
            // The context is gone.
            Some(_) => write(
                &case,
                name,
                folder,
                ", not reduced: `--replay` it with `--out`",
            ),
        }
    }
    if let Some(wrong) = &report.ended {
        keep_ended(wrong, folder, args);
    }
}

/// Runs the case of a file; gives the status of the process.
fn replay(gpu: &Gpu, path: &str, args: &Args) -> i32 {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let case = Case::from_text(&text).unwrap_or_else(|e| panic!("{path}: {e}"));
    if let Err(why) = sound(&case) {
        println!("note: {why}");
    }
    let mut report = Report::default();
    let wrong = |why: String| Wrong {
        name: format!("seed {}", case.seed),
        case: case.clone(),
        why,
    };
    let status = match Verdict::of(gpu, &case) {
        Verdict::Same | Verdict::Gone => {
            println!("the same");
            0
        }
        Verdict::Differs(why) => {
            println!("{why}");
            report.differing.push(wrong(why));
            1
        }
        Verdict::Ended(why) => {
            println!("{why}");
            report.ended = Some(wrong(why));
            ENDED
        }
    };
    if let Some(folder) = args.value("--out") {
        keep(gpu, &report, &folder, args);
    }
    status
}

/// Runs the cases that once differed, then random ones; gives the status of the process.
fn run(gpu: &Gpu, args: &Args) -> i32 {
    let (seed, count) = (args.number("--seed", 1), args.number("--count", 2000));
    println!("{count} kernels; --seed {seed} --count {count} runs them again");
    let tell = |wrong: &Wrong| {
        let text: String = wrong.why.chars().take(400).collect();
        println!("{}: {text}", wrong.name);
    };
    let mut visit = Visit {
        device: gpu,
        limit: Duration::MAX,
        failures: usize::MAX,
        tell: &tell,
    };
    let known = visit.run(0..KNOWN.len() as u64, &|number| {
        let (name, text) = KNOWN[number as usize];
        let case = Case::from_text(text).unwrap_or_else(|e| panic!("{name}: {e}"));
        (name.to_owned(), case)
    });
    visit.limit = Duration::from_secs(args.number("--seconds", u64::MAX));
    visit.failures = FAILURES;
    let random = match known.ended {
        Some(_) => Report::default(),
        None => visit.run(seed..seed.saturating_add(count), &|seed| {
            (format!("seed {seed}"), case(seed))
        }),
    };
    for report in [&known, &random] {
        if let Some(wrong) = &report.ended {
            let options: String = args.options().iter().map(|o| format!(" {o}")).collect();
            println!(
                "{} ended the CUDA context, so nothing was run after it; options:{}",
                wrong.name,
                if options.is_empty() {
                    " none"
                } else {
                    &options
                }
            );
        }
    }
    if let Some(folder) = args.value("--out") {
        // Of those that differed once, the file is there.
        keep(gpu, &random, &folder, args);
    }
    println!(
        "{} passed, {} failed",
        random.passed,
        random.differing.len()
    );
    let known_wrong = known.differing.len() + usize::from(known.ended.is_some());
    println!("{known_wrong} of {} known cases differ", KNOWN.len());
    let ended = known.ended.is_some() || random.ended.is_some();
    match (ended, known_wrong > 0 || !random.differing.is_empty()) {
        (true, _) => ENDED,
        (false, wrong) => i32::from(wrong),
    }
}

fn main() {
    let args = Args(std::env::args().skip(1).collect());
    let context = match CudaContext::new(0) {
        Ok(context) => context,
        Err(error) => {
            println!("no CUDA device, so no random kernel was run on one: {error}");
            std::process::exit(i32::from(args.flag("--require")));
        }
    };
    let opt_level = match args.flag("--o0") {
        true => OptLevel::O0,
        false => OptLevel::O3,
    };
    let hooks = match args.flag("--planted") {
        true => HookSet::new().with(Planted::NoAlias.hook()),
        false => HookSet::new(),
    };
    let gpu = Gpu::new(context, opt_level, hooks);
    let status = match args.value("--replay") {
        Some(path) => replay(&gpu, &path, &args),
        None => run(&gpu, &args),
    };
    std::process::exit(status);
}
