//! Kernels as one writes them who knows CUDA and comes to Kiln, with checks beside without:
//! `cargo bench -p kiln-suite --bench strangers`, on a GPU by its events, or on the CPU, by the processor's time of all
//! threads.
//!
//! - `--filter TEXT`: the kernels whose names hold it;
//! - `--samples N`: how often each is timed, 31 if not said;
//! - `--size small`, `medium` or `full`: of the input; if not said, `full` on a GPU, else `medium`;
//! - `--write FOLDER`: no times, but the PTX of the kernels, as `suite --write` does.
//!
//! Both ways are timed in one process, in turn, a sample at least a millisecond of work. What is told is the median without
//! checks, and the quartiles of the ratio of each sample with checks to its neighbour without. Results are compared first.

mod code;
#[path = "../driver.rs"]
mod driver;
mod options;
mod timing;

use kiln::core::job::CompileOptions;
use kiln::prelude::*;
use kiln_suite::{OnJit, STRANGERS, Size, Stranger, without_checks};
use serde_json::json;
use timing::{quartiles, runs_of_a_sample, time};

fn main() -> kiln::Result<()> {
    let options = options::options();
    let chosen = || {
        STRANGERS
            .iter()
            .filter(|stranger| stranger.name.contains(&options.filter))
    };
    let device = Device::best()?;
    let with = |compile| {
        Jit::builder()
            .device(device.clone())
            .compile(compile)
            .build()
    };
    let jits = [with(CompileOptions::default())?, with(without_checks())?];
    let target = jits[0].target();
    if let Some(folder) = &options.write {
        return code::write_strangers(folder, target, chosen());
    }
    let size = match jits[0].device().info().kind {
        DeviceKind::Cuda => Size::Full,
        _ => Size::Medium,
    };
    let size = options.size.unwrap_or(size);
    println!(
        "{:<32} {:>14}  checked to unchecked",
        "kernel", "unchecked, ms"
    );
    let mut rows = Vec::new();
    for stranger in chosen() {
        let row = measure(stranger, &jits, size, options.samples)?;
        row.print();
        rows.push(row);
    }
    for row in &rows {
        println!("{}", row.json());
    }
    Ok(())
}

/// Of a kernel.
struct Row {
    name: &'static str,
    /// Median milliseconds of a run without checks.
    unchecked: f64,
    /// Quartiles of the ratio of each sample with checks to the one without that comes next.
    ratio: [f64; 3],
}

impl Row {
    fn print(&self) {
        let [quarter, half, three] = self.ratio;
        println!(
            "{:<32} {:>14.4}  {quarter:.3} {half:.3} {three:.3}",
            self.name, self.unchecked
        );
    }

    fn json(&self) -> serde_json::Value {
        json!({
            "name": format!("strangers/{}", self.name),
            "unit": "ms",
            "unchecked": self.unchecked,
            "ratio": self.ratio,
        })
    }
}

fn measure(stranger: &Stranger, jits: &[Jit; 2], size: Size, samples: usize) -> kiln::Result<Row> {
    let mut workload = (stranger.make)(&jits[0], size)?;
    for jit in jits {
        workload.reset(&mut OnJit(jit))?;
        workload.run(&mut OnJit(jit))?;
        if let Err(error) = workload.check() {
            panic!("{}: {error}", stranger.name);
        }
    }
    let runs = runs_of_a_sample(&jits[0], workload.as_mut(), &mut OnJit(&jits[0]))?;
    let (mut unchecked, mut ratios) = (Vec::new(), Vec::new());
    for _ in 0..samples {
        let [with, without] = jits
            .each_ref()
            .map(|jit| time(jit, workload.as_mut(), &mut OnJit(jit), runs));
        let (with, without) = (with?, without?);
        unchecked.push(without);
        ratios.push(with / without);
    }
    Ok(Row {
        name: stranger.name,
        unchecked: quartiles(&mut unchecked)[1],
        ratio: quartiles(&mut ratios),
    })
}
