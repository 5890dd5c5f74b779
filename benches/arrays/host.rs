//! What an expression costs the host beyond its launch, and what the first of its kind takes in a process that has
//! compiled before.

use std::process::Command;
use std::time::Instant;

use kiln::core::cache::CacheFolder;
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
        let [expression, reduction] = numbers[..] else {
            panic!("{text}{}", String::from_utf8_lossy(&output.stderr));
        };
        let figures = [
            ("expression", expression, 20.0),
            ("reduction", reduction, 30.0),
        ];
        for (what, ours, most) in figures {
            self.table.add(Row {
                name: format!("first {what} of its kind, warm process"),
                ours,
                unit: "ms",
                peer: None,
                goal: Goal::Most(most),
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

/// The process that evaluates for the first time: prints medians in milliseconds.
pub fn first(device: &str) -> kiln::Result<()> {
    let device = match device {
        "gpu" => Device::cuda(0)?,
        _ => Device::cpu(),
    };
    let jit = Jit::builder()
        .device(device)
        .cache(CacheFolder::Off)
        .build()?;
    let arrays = Arrays::new(&jit);
    let x = arrays.full(1 << 16, 0.5f32)?;
    let (mut expressions, mut reductions) = (Vec::new(), Vec::new());
    for number in 0..=FIRSTS {
        let expr = numbered(&x, number);
        let start = Instant::now();
        expr.eval()?;
        jit.synchronize()?;
        expressions.push(micros(start) / 1e3);
        let start = Instant::now();
        expr.sum_axis(..)?;
        jit.synchronize()?;
        reductions.push(micros(start) / 1e3);
    }
    // Only the first one finds a process that has compiled nothing.
    println!("{} {}", median(&expressions[1..]), median(&reductions[1..]));
    Ok(())
}
