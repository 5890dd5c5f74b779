//! What an expression costs the host beyond its launch, and what the first of its kind takes in a process that has
//! compiled before.

use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kiln::core::cache::CacheFolder;
use kiln::core::compile::{Stage, StageObserver};
use kiln::prelude::*;

use crate::report::median;
use crate::samples::Bench;
use crate::table::{Goal, Row};

/// Launches of a sample, which the device's queue takes.
const BATCH: u32 = 100;

/// Elements: one block, as the figures are about the host.
const N: usize = 256;

/// The argument of the process that evaluates for the first time.
pub const FIRST: &str = "--first";

/// Expressions that are evaluated for the first time.
const FIRSTS: u32 = 9;

/// What the expression's kernel does.
#[kernel]
fn scale(y: &mut [f32], x: &[f32], by: f32) {
    let i = global_id().x;
    if i < y.len() {
        y[i] = by * x[i];
    }
}

fn micros(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e6
}

impl Bench {
    /// Microseconds of each of many, behind each other on a device that had nothing to do.
    fn batch(&self, run: &mut dyn FnMut() -> kiln::Result<()>) -> kiln::Result<f64> {
        self.arrays.jit().synchronize()?;
        let start = Instant::now();
        (0..BATCH).try_for_each(|_| run())?;
        Ok(micros(start) / f64::from(BATCH))
    }

    /// The host's part of a cached expression.
    pub fn host_costs(&mut self) -> kiln::Result<()> {
        if !self.wants("host") {
            return Ok(());
        }
        let arrays = self.arrays.clone();
        let jit = arrays.jit();
        let x = arrays.ones::<f32>(N)?;
        let (expr, mut y) = (2.0 * &x, arrays.zeros::<f32>(N)?);
        let (own, mut out) = (jit.upload(&[1.0f32; N])?, jit.zeros::<f32>(N)?);
        let mut times: [Vec<f64>; 4] = Default::default();
        let batches = if self.quick { 10 } else { 300 };
        for at in 0..batches + 3 {
            let found = [
                self.batch(&mut || scale.launch(jit, (1, 256), &mut out, &own, 2.0))?,
                self.batch(&mut || Ok(expr.eval_into(&mut y)?))?,
                self.batch(&mut || {
                    expr.eval()?;
                    Ok(())
                })?,
                self.batch(&mut || Ok((2.0 * &x).eval_into(&mut y)?))?,
            ];
            // The first ones compile, and find no memory.
            if at >= 3 {
                times
                    .iter_mut()
                    .zip(found)
                    .for_each(|(times, time)| times.push(time));
            }
        }
        jit.synchronize()?;
        let [launch, into, new, written] = times.map(|times| median(&times));
        let figures = [
            ("a typed launch of its kernel", launch, Goal::None),
            (
                "an expression beyond it, into an output",
                into - launch,
                Goal::Most(0.6),
            ),
            ("a new output beyond that", new - into, Goal::Most(0.2)),
            (
                "writing the expression beyond that",
                written - into,
                Goal::None,
            ),
        ];
        for (what, ours, goal) in figures {
            self.table.add(Row {
                name: format!("host: {what}"),
                ours,
                unit: "us",
                peer: None,
                goal,
            });
        }
        Ok(())
    }

    /// First evaluations, in a process of their own for which the driver keeps nothing.
    pub fn first_evaluations(&mut self) -> kiln::Result<()> {
        if !self.wants("first") {
            return Ok(());
        }
        let program = std::env::current_exe().expect("this program has a file");
        let mut command = Command::new(program);
        command
            .args([FIRST, self.device()])
            .env("CUDA_CACHE_DISABLE", "1");
        let output = command.output().expect("this program runs");
        let text = String::from_utf8_lossy(&output.stdout);
        let numbers = text
            .split_whitespace()
            .filter_map(|n| n.parse::<f64>().ok());
        let numbers: Vec<f64> = numbers.collect();
        let [expression, expression_code, reduction, reduction_code] = numbers[..] else {
            panic!("{text}{}", String::from_utf8_lossy(&output.stderr));
        };
        let figures = [
            (
                "expression of its kind, warm process",
                expression,
                Goal::Most(20.0),
            ),
            (
                "expression: of that, until there is code",
                expression_code,
                Goal::None,
            ),
            (
                "reduction of its kind, warm process",
                reduction,
                Goal::Most(30.0),
            ),
            (
                "reduction: of that, until there is code",
                reduction_code,
                Goal::None,
            ),
        ];
        for (what, ours, goal) in figures {
            self.table.add(Row {
                name: format!("first {what}"),
                ours,
                unit: "ms",
                peer: None,
                goal,
            });
        }
        Ok(())
    }

    fn device(&self) -> &'static str {
        match self.arrays.jit().device().info().kind {
            DeviceKind::Cuda => "gpu",
            _ => "cpu",
        }
    }
}

/// Expressions of which no two are alike.
fn numbered(x: &Array<f32>, number: u32) -> Expr<f32> {
    let mut expr = 2.0 * x;
    for bit in 0..5 {
        expr = match number >> bit & 1 {
            0 => expr * x + 1.0,
            _ => (expr - x).sqrt(),
        };
    }
    expr
}

/// Sums up how long stages take, without the driver's assembly of PTX.
#[derive(Default)]
struct Stages(Mutex<Duration>);

impl Stages {
    fn total(&self) -> MutexGuard<'_, Duration> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StageObserver for Stages {
    fn stage(&self, _: &str, _: Stage, took: Duration, _: &dyn Fn() -> String) {
        *self.total() += took;
    }

    fn wants_text(&self) -> bool {
        false
    }
}

/// What was done for the first time.
#[derive(Default)]
struct Firsts {
    /// How long each took, in milliseconds.
    all: Vec<f64>,
    /// The part of it until there was PTX, or a CPU's machine code.
    code: Vec<f64>,
}

impl Firsts {
    fn time(
        &mut self,
        jit: &Jit,
        stages: &Stages,
        run: impl FnOnce() -> Result<(), kiln::array::ArrayError>,
    ) -> kiln::Result<()> {
        let (start, before) = (Instant::now(), *stages.total());
        run()?;
        jit.synchronize()?;
        self.all.push(micros(start) / 1e3);
        self.code
            .push((*stages.total() - before).as_secs_f64() * 1e3);
        Ok(())
    }

    /// Medians, without the first, which alone finds a process that has compiled nothing.
    fn medians(&self) -> String {
        format!("{} {}", median(&self.all[1..]), median(&self.code[1..]))
    }
}

/// The process that evaluates for the first time: prints medians in milliseconds.
pub fn first(device: &str) -> kiln::Result<()> {
    let device = match device {
        "gpu" => Device::cuda(0)?,
        _ => Device::cpu(),
    };
    let stages = Arc::new(Stages::default());
    let jit = Jit::builder()
        .device(device)
        .cache(CacheFolder::Off)
        .observer(stages.clone())
        .build()?;
    let arrays = Arrays::new(&jit);
    let x = arrays.full(1 << 16, 0.5f32)?;
    let (mut expressions, mut reductions) = (Firsts::default(), Firsts::default());
    for number in 0..=FIRSTS {
        let expr = numbered(&x, number);
        expressions.time(&jit, &stages, || expr.eval().map(drop))?;
        reductions.time(&jit, &stages, || expr.sum_axis(..).map(drop))?;
    }
    println!("{} {}", expressions.medians(), reductions.medians());
    Ok(())
}
