//! How long runs of a program take.

#[path = "../cpu/clock.rs"]
pub mod clock;

use kiln::core::runtime::{DeviceKind, Event};
use kiln::prelude::*;
use kiln_suite::{Launcher, Workload};

/// The least that a sample takes, in milliseconds: on a GPU, and on a CPU, whose clock is coarser and which others use, too.
pub const LEAST: f64 = 1.0;
const LEAST_ON_CPU: f64 = 4.0;

/// How many runs a sample has.
pub fn runs_of_a_sample(
    jit: &Jit,
    workload: &mut dyn Workload,
    way: &mut dyn Launcher,
) -> kiln::Result<usize> {
    let once = time(jit, workload, way, 1)?;
    let least = match jit.device().info().kind {
        DeviceKind::Cuda => LEAST,
        _ => LEAST_ON_CPU,
    };
    Ok((least / once).ceil().clamp(1.0, 1000.0) as usize)
}

/// Milliseconds of a run, the mean of some: by the device's events, and by the processor's time on a CPU.
pub fn time(
    jit: &Jit,
    workload: &mut dyn Workload,
    way: &mut dyn Launcher,
    runs: usize,
) -> kiln::Result<f64> {
    workload.again(way)?;
    jit.synchronize()?;
    let mut events = None;
    let sample = clock::timed(1, || -> kiln::Result<()> {
        let from = Event::record(jit.device())?;
        for _ in 0..runs {
            workload.run(way)?;
        }
        events = Some((from, Event::record(jit.device())?));
        jit.synchronize()
    })?;
    let took = match events {
        Some((from, to)) if jit.device().info().kind == DeviceKind::Cuda => from.elapsed_ms(&to)?,
        _ => sample.cpu * 1e3,
    };
    Ok(took / runs as f64)
}

/// Sorts numbers, and gives their quartiles.
pub fn quartiles(numbers: &mut [f64]) -> [f64; 3] {
    numbers.sort_by(f64::total_cmp);
    [1, 2, 3].map(|part| numbers[numbers.len() * part / 4])
}
