//! Runs the suite on this machine's CPU, in the interpreter and compiled at each width, and holds every module it compiles against the text form:
//! printed, parsed and printed again it must be the same.
//!
//! `KILN_BLOCK_ORDER` sets another seed for the order in which blocks begin, where they begin in any.

mod suite;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use kiln::core::compile::{Stage, StageObserver};
use kiln::core::ir::parse;
use kiln::core::runtime::{BlockOrder, CpuOptions};
use kiln::core::target::Barriers;
use kiln::prelude::*;

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
        let again = parse(&text, &kiln::stdlib::find).map(|module| module.to_string());
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

/// The seed of the order in which blocks begin.
fn seed() -> u64 {
    let Ok(text) = std::env::var("KILN_BLOCK_ORDER") else {
        return 1;
    };
    text.parse()
        .unwrap_or_else(|_| panic!("KILN_BLOCK_ORDER: `{text}` is no number"))
}

/// Blocks in an order of their own.
fn shuffled() -> CpuOptions {
    CpuOptions {
        block_order: BlockOrder::Shuffled(seed()),
        ..CpuOptions::default()
    }
}

/// Runs the suite on a device with these options; blocks that wait for earlier ones begin in order.
fn run(options: CpuOptions) {
    let round_trip = Arc::<RoundTrip>::default();
    let order = options.block_order;
    let in_order = Device::cpu_with(CpuOptions {
        block_order: BlockOrder::Increasing,
        ..options.clone()
    });
    let device = Device::cpu_with(options);
    let mut failed = Vec::new();
    for (name, case) in suite::cases() {
        let device = match suite::WAIT_FOR_EARLIER_BLOCKS.contains(&name) {
            true => &in_order,
            false => &device,
        };
        let observer: Arc<dyn StageObserver + Send + Sync> = round_trip.clone();
        let options = JitOptions {
            observer: Some(observer),
            ..JitOptions::default()
        };
        let jit = Jit::with(device.clone(), kiln::hooks::standard(), options);
        let run = std::panic::AssertUnwindSafe(|| case(&jit).map_err(|e| e.to_string()));
        match std::panic::catch_unwind(run) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => failed.push(format!("{name}: {error}")),
            Err(_) => failed.push(format!("{name}: panicked")),
        }
    }
    assert!(
        failed.is_empty(),
        "blocks began {order} (KILN_BLOCK_ORDER)\n{}",
        failed.join("\n")
    );
    let wrong = round_trip.wrong.lock().expect("no case panics here");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(*round_trip.seen.lock().expect("no case panics here") > 100);
}

#[test]
fn interpreted() {
    run(CpuOptions {
        interpret: true,
        ..CpuOptions::default()
    });
}

#[test]
fn interpreted_with_blocks_in_any_order() {
    run(CpuOptions {
        interpret: true,
        ..shuffled()
    });
}

#[test]
fn compiled_as_suits_the_machine() {
    run(CpuOptions::default());
}

/// The compiled backend with vectors of a number of lanes, blocks in any order.
fn compiled(lanes: u32) {
    run(CpuOptions {
        lanes: Some(lanes),
        ..shuffled()
    });
}

#[test]
fn compiled_for_1_lane() {
    compiled(1);
}

#[test]
fn compiled_for_8_lanes() {
    compiled(8);
}

#[test]
fn compiled_for_16_lanes() {
    compiled(16);
}

#[test]
fn compiled_for_32_lanes() {
    compiled(32);
}

#[test]
fn compiled_for_64_lanes() {
    compiled(64);
}

#[test]
fn compiled_with_a_coroutine_for_each_warp() {
    run(CpuOptions {
        barriers: Some(Barriers::Coroutines),
        ..CpuOptions::default()
    });
}

#[test]
fn compiled_with_a_coroutine_for_each_thread() {
    run(CpuOptions {
        lanes: Some(1),
        barriers: Some(Barriers::Coroutines),
        ..CpuOptions::default()
    });
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
    let device = Device::cpu_with(CpuOptions {
        threads: Some(1),
        ..options
    });
    let jit = Jit::with(device, kiln::hooks::standard(), JitOptions::default());
    let mut sums = jit.zeros::<u32>(101)?;
    takes_over.launch(&jit, (100, 32), &mut sums)?;
    sums.to_vec()
}

#[test]
fn a_kernel_that_counts_on_the_order_of_blocks_is_found() -> kiln::Result<()> {
    for interpret in [true, false] {
        let with = |block_order| CpuOptions {
            interpret,
            block_order,
            ..CpuOptions::default()
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
