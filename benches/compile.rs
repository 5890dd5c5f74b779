//! From IR to PTX, stage by stage, in a warm process: how long a new kernel takes before the
//! driver sees it.
//!
//! `cargo bench --bench compile`. The figures to meet are 3 ms for saxpy and 8 ms for the tiled
//! matrix product, median.

#[path = "../tests/kernels/mod.rs"]
mod kernels;
mod report;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use kiln::core::target::{PtxTarget, Target};
use kiln::prelude::*;
use report::{Report, median};

const RUNS: usize = 41;

fn main() -> kiln::Result<()> {
    let options = JitOptions {
        target: Some(Target::Ptx(PtxTarget::for_sm(90))),
        ..JitOptions::default()
    };
    let jit = Jit::with(Device::cpu(), kiln::hooks::standard(), options);
    let mut report = Report::new("compile");

    let x = jit.zeros::<f32>(16)?;
    let mut y = jit.zeros::<f32>(16)?;
    let saxpy = kernels::saxpy()?;
    time(&mut report, "saxpy", 3.0, || {
        jit.inspect(&saxpy, args!(2.0f32, &x, &mut y))
    })?;
    let matmul = kernels::tiled_matmul()?;
    let mut c = jit.zeros::<f32>(16)?;
    time(&mut report, "tiled_matmul", 8.0, || {
        jit.inspect(&matmul, args!(&x, &x, &mut c, 4u32))
    })?;
    let build: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            std::hint::black_box(kernels::saxpy().is_ok());
            start.elapsed()
        })
        .collect();
    report.row("saxpy: building the IR", micros(median(&build)), "us");
    report.print();
    Ok(())
}

/// Compiles afresh again and again; reports the sum and every stage, without printing them.
fn time(
    report: &mut Report,
    name: &str,
    goal_ms: f64,
    mut compile: impl FnMut() -> kiln::Result<kiln::core::inspect::Inspection>,
) -> kiln::Result<()> {
    // The first compilation opens libLLVM.
    compile()?;
    let mut totals = Vec::new();
    let mut stages: BTreeMap<_, Vec<Duration>> = BTreeMap::new();
    for _ in 0..RUNS {
        let inspection = compile()?;
        totals.push(inspection.timings().map(|(_, took)| took).sum());
        for (stage, took) in inspection.timings() {
            stages.entry(stage).or_default().push(took);
        }
    }
    let total = micros(median(&totals)) / 1e3;
    report.against(&format!("{name}: IR to PTX"), total, "ms", "goal", goal_ms);
    for (stage, took) in stages {
        report.row(
            &format!("{name}: {}", stage.name()),
            micros(median(&took)),
            "us",
        );
    }
    Ok(())
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}
