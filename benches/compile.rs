//! From IR to PTX, stage by stage, in a warm process: how long a new kernel takes before the
//! driver sees it; and how long describing one takes, with the builder and as a `#[kernel]` function.
//!
//! `cargo bench --bench compile`. The figures to meet are 3 ms for saxpy and 8 ms for the tiled
//! matrix product, and 50 us for the IR of saxpy, median.

#[path = "../tests/kernels/mod.rs"]
mod kernels;
mod report;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use kiln::core::front::LazyKernel;
use kiln::core::target::{PtxTarget, Target};
use kiln::prelude::*;
use report::{Report, median};

const RUNS: usize = 41;

fn main() -> kiln::Result<()> {
    let options = JitOptions::default().target(Target::Ptx(PtxTarget::for_sm(90)));
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
    build(&mut report)?;
    report.print();
    Ok(())
}

/// Building the IR of saxpy: with the builder, and as `#[kernel]` functions, which are described at
/// their first use; a second description by the same code leaves out what is cold at the first.
fn build(report: &mut Report) -> kiln::Result<()> {
    let mut row = |name: &str, mut build: Box<dyn FnMut(usize) -> kiln::Result<()>>| {
        let mut times = Vec::new();
        for run in 0..functions().len() {
            let start = Instant::now();
            build(run)?;
            times.push(micros(start.elapsed()));
        }
        let name = format!("saxpy: building the IR, {name}");
        report.against(&name, median(&times), "us", "goal", BUILD_GOAL_US);
        Ok(())
    };
    row("builder", Box::new(|_| kernels::saxpy().map(drop)))?;
    row(
        "#[kernel]",
        Box::new(|run| functions()[run].get().map(drop)),
    )?;
    let again = |run: usize| functions()[0].redefine(functions()[run]);
    row("#[kernel] again", Box::new(again))
}

/// How long building the IR of saxpy may take, in microseconds.
const BUILD_GOAL_US: f64 = 50.0;

/// `y = a * x + y` under many names, as each is described only once.
macro_rules! saxpy_functions {
    ($($name:ident)*) => {
        $(
            #[kernel]
            fn $name<T: Float>(a: T, x: &[T], y: &mut [T]) {
                let i = global_id().x;
                if i < y.len() {
                    y[i] = a * x[i] + y[i];
                }
            }
        )*

        fn functions() -> Vec<&'static LazyKernel> {
            vec![$(&*$name),*]
        }
    };
}

saxpy_functions! {
    k0 k1 k2 k3 k4 k5 k6 k7 k8 k9 k10 k11 k12 k13 k14 k15 k16 k17 k18 k19 k20 k21 k22 k23 k24 k25 k26
    k27 k28 k29 k30 k31 k32 k33 k34 k35 k36 k37 k38 k39 k40
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
