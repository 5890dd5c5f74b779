//! The suite on this machine's CPU, in the interpreter and compiled at each width. Every module that is
//! compiled is held against the text form: printed, parsed and printed again it must be the same.
//!
//! `KILN_BLOCK_ORDER` sets another seed for the order in which blocks begin, where they begin in any.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use kiln::core::compile::{Stage, StageObserver};
use kiln::core::ir::parse;
use kiln::core::job::{CompileOptions, OptLevel};
use kiln::core::runtime::{BlockOrder, CpuOptions};
use kiln::core::target::{Barriers, CpuFeatures};
use kiln::prelude::*;
use libtest_mimic::Trial;
use suite::{Case, Outcome, WAIT_FOR_EARLIER_BLOCKS};

use crate::{each_case, in_turns, seed, test};

/// The tests.
pub fn tests() -> Vec<Trial> {
    let on = |(name, options): (&str, CpuOptions), level: OptLevel| {
        each_case(name, move |case| run(case, &options, level).map(drop))
    };
    let as_users = |device| on(device, OptLevel::default());
    let mut tests: Vec<Trial> = devices().into_iter().flat_map(as_users).collect();
    let others = others();
    let count = others.len();
    for (turn, other) in others.into_iter().enumerate() {
        tests.extend(in_turns((turn, count), on(other, OptLevel::O0)));
    }
    for device in of_one_worker() {
        let of_chapter = on(device, OptLevel::O0).into_iter();
        tests.extend(of_chapter.filter(|test| test.name().contains("::blocks_beside::")));
    }
    tests.extend([
        test("modules_are_held_against_their_texts", texts_are_seen),
        test(
            "a_kernel_that_counts_on_the_order_of_blocks_is_found",
            orders_differ,
        ),
    ]);
    tests
}

/// A device's options, with a name for its tests.
type Named = (&'static str, CpuOptions);

fn shuffled() -> CpuOptions {
    CpuOptions::default().block_order(BlockOrder::Shuffled(seed("KILN_BLOCK_ORDER")))
}

/// The devices that every case runs on.
fn devices() -> [Named; 3] {
    [
        ("interpreted", CpuOptions::default().interpret(true)),
        ("interpreted_in_any_order", shuffled().interpret(true)),
        ("compiled", CpuOptions::default()),
    ]
}

/// Those that take turns. They are compiled without LLVM's passes, which take most of the time and are tried by `compiled`.
fn others() -> Vec<Named> {
    let lanes = |lanes| shuffled().lanes(lanes);
    let coroutines = |lanes| {
        let plain = CpuOptions::default();
        plain.lanes(lanes).barriers(Barriers::Coroutines)
    };
    let mut devices = vec![
        ("compiled_for_1_lane", lanes(1)),
        ("compiled_for_8_lanes", lanes(8)),
        ("compiled_for_16_lanes", lanes(16)),
        ("compiled_for_32_lanes", lanes(32)),
        ("compiled_for_64_lanes", lanes(64)),
        ("compiled_with_a_coroutine_a_warp", coroutines(None)),
        ("compiled_with_a_coroutine_a_thread", coroutines(Some(1))),
    ];
    // What is chosen for the long rows that most cases have is what `compiled` runs.
    let chosen = (4 * CpuFeatures::host().lanes()).min(64);
    devices.retain(|(_, options)| options.lanes != Some(chosen));
    devices
}

/// Devices on which the blocks of a row that are next to each other are run together: of several workers, each takes a few.
fn of_one_worker() -> [Named; 3] {
    let lanes = |lanes| CpuOptions::default().threads(1).lanes(lanes);
    [
        ("compiled_for_one_worker_with_8_lanes", lanes(8)),
        ("compiled_for_one_worker_with_16_lanes", lanes(16)),
        ("compiled_for_one_worker_with_32_lanes", lanes(32)),
    ]
}

/// Parses and prints what it sees again.
#[derive(Default)]
struct RoundTrip {
    seen: Mutex<usize>,
    wrong: Mutex<Vec<String>>,
}

impl StageObserver for RoundTrip {
    fn stage(&self, kernel: &str, stage: Stage, _: Duration, text: &dyn Fn() -> String) {
        if !matches!(stage, Stage::Specialized | Stage::Legal) {
            return;
        }
        let text = text();
        let again = parse(&text, &suite::find_row).map(|module| module.to_string());
        *self.seen.lock().expect("no case panics here") += 1;
        if again.as_ref().ok() != Some(&text) {
            let report = format!("{kernel}, {}: {again:?} is not\n{text}", stage.name());
            self.wrong.lock().expect("no case panics here").push(report);
        }
    }

    fn wants_text(&self) -> bool {
        false
    }
}

/// Runs a case on a device with these options; blocks that wait for earlier ones begin in order. Gives the
/// number of modules that were held against their texts.
fn run(
    case: &Case,
    options: &CpuOptions,
    level: OptLevel,
) -> Result<usize, Box<dyn std::error::Error>> {
    let mut options = options.clone();
    if WAIT_FOR_EARLIER_BLOCKS.contains(&case.name()) {
        options.block_order = BlockOrder::Increasing;
    }
    let order = options.block_order;
    let round_trip = Arc::<RoundTrip>::default();
    let observer: Arc<dyn StageObserver + Send + Sync> = round_trip.clone();
    let compile = CompileOptions::default().opt_level(level);
    let observed = JitOptions::default().compile(compile).observer(observer);
    let jit = Jit::with(Device::cpu_with(options), kiln::hooks::standard(), observed);
    (case.run)(&jit)
        .map_err(|error| format!("blocks began {order} (KILN_BLOCK_ORDER)\n{error}"))?;
    let wrong = round_trip.wrong.lock().expect("the case has not panicked");
    match wrong.is_empty() {
        true => Ok(*round_trip.seen.lock().expect("the case has not panicked")),
        false => Err(wrong.join("\n").into()),
    }
}

/// What is seen of a case that compiles a kernel.
fn texts_are_seen() -> Outcome {
    let [case, ..] = suite::visibility::CASES else {
        return Err("the chapter has no cases".into());
    };
    match run(case, &CpuOptions::default(), OptLevel::default())? {
        0 => Err(format!("`{}` compiles, and nothing is seen", case.path()).into()),
        _ => Ok(()),
    }
}

/// Each block takes over what the block before has left, and does not wait for it.
#[kernel]
fn takes_over(sums: &mut [u32]) {
    let block = block_idx().x;
    if thread_idx().x == 0 {
        sums[block + 1] = sums[block] + 1;
    }
}

/// What a kernel gives that is right only as long as blocks run one after the other.
fn take_over(options: CpuOptions) -> kiln::Result<Vec<u32>> {
    let device = Device::cpu_with(options.threads(1));
    let jit = Jit::with(device, kiln::hooks::standard(), JitOptions::default());
    let mut sums = jit.zeros::<u32>(101)?;
    takes_over.launch(&jit, (100, 32), &mut sums)?;
    sums.to_vec()
}

fn orders_differ() -> Outcome {
    for interpret in [true, false] {
        let with = |block_order| {
            CpuOptions::default()
                .interpret(interpret)
                .block_order(block_order)
        };
        let in_order = take_over(with(BlockOrder::Increasing))?;
        assert_eq!(in_order, (0..=100).collect::<Vec<u32>>());
        for seed in 0..5 {
            let found = take_over(with(BlockOrder::Shuffled(seed)))?;
            assert_ne!(found, in_order, "seed {seed}");
            let again = take_over(with(BlockOrder::Shuffled(seed)))?;
            assert_eq!(found, again, "seed {seed}");
        }
    }
    Ok(())
}
