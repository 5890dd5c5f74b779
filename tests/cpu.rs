//! Runs the suite on this machine's CPU, in the interpreter and compiled at each width, and holds every module it compiles against the text form:
//! printed, parsed and printed again it must be the same.

mod suite;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use kiln::core::codegen::Barriers;
use kiln::core::compile::{Stage, StageObserver};
use kiln::core::ir::parse;
use kiln::core::runtime::CpuOptions;
use kiln::prelude::*;

/// Parses and prints what it sees again.
#[derive(Default)]
struct RoundTrip {
    seen: Mutex<usize>,
    wrong: Mutex<Vec<String>>,
}

impl StageObserver for RoundTrip {
    fn stage(&self, kernel: &str, stage: Stage, _: Duration, text: &dyn Fn() -> String) {
        let text = text();
        let again = parse(&text, &kiln::stdlib::find).map(|module| module.to_string());
        *self.seen.lock().expect("no case panics here") += 1;
        if again.as_ref().ok() != Some(&text) {
            let report = format!("{kernel}, {}: {again:?} is not\n{text}", stage.name());
            self.wrong.lock().expect("no case panics here").push(report);
        }
    }
}

/// Runs the suite on a device.
fn run(device: &Device, round_trip: &Arc<RoundTrip>) {
    let mut failed = Vec::new();
    for (name, case) in suite::cases() {
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
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    let wrong = round_trip.wrong.lock().expect("no case panics here");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(*round_trip.seen.lock().expect("no case panics here") > 100);
}

#[test]
fn interpreted() {
    let device = Device::cpu_with(CpuOptions {
        interpret: true,
        ..CpuOptions::default()
    });
    run(&device, &Arc::default());
}

/// The compiled backend with vectors of a number of lanes.
fn compiled(lanes: Option<u32>) {
    let device = Device::cpu_with(CpuOptions {
        lanes,
        ..CpuOptions::default()
    });
    run(&device, &Arc::default());
}

#[test]
fn compiled_as_suits_the_machine() {
    compiled(None);
}

#[test]
fn compiled_for_1_lane() {
    compiled(Some(1));
}

#[test]
fn compiled_for_8_lanes() {
    compiled(Some(8));
}

#[test]
fn compiled_for_16_lanes() {
    compiled(Some(16));
}

#[test]
fn compiled_for_32_lanes() {
    compiled(Some(32));
}

#[test]
fn compiled_for_64_lanes() {
    compiled(Some(64));
}

#[test]
fn compiled_with_a_coroutine_for_each_warp() {
    let device = Device::cpu_with(CpuOptions {
        barriers: Some(Barriers::Coroutines),
        ..CpuOptions::default()
    });
    run(&device, &Arc::default());
}

#[test]
fn compiled_with_a_coroutine_for_each_thread() {
    let device = Device::cpu_with(CpuOptions {
        lanes: Some(1),
        barriers: Some(Barriers::Coroutines),
        ..CpuOptions::default()
    });
    run(&device, &Arc::default());
}
