//! Sequential loops with directives beside the same programs by hand, in CUDA C++ and as `#[kernel]`s:
//! `cargo bench -p kiln-suite --bench sequential`, on a machine with a CUDA device and nvcc, or on the CPU, where the
//! `#[kernel]`s are the peer and times are the processor's of all threads.
//!
//! - `--filter TEXT`: the programs whose names hold it;
//! - `--samples N`: how often each is timed, 31 if not said;
//! - `--size small`, `medium` or `full`: of the input; if not said, `full` on a GPU, else `medium`;
//! - `--write FOLDER`: no times, but the PTX of the kernels for inputs of the size, as `suite --write` does.
//!
//! On the CPU, and for `medium` inputs, C loops with OpenMP are timed, too, that `cargo xtask bench-peers` has compiled, a process of
//! their own: `OpenMP` is their time to that of the kernel by directives without checks, so that above 1 is ahead.
//!
//! Clauses that no program of the suite has, `over_lane`, `reduction`, `scan`, `privatize` and `peel`, are timed beside `#[kernel]`s alone.
//!
//! The ways are timed in one process, in turn, a sample at least a millisecond of work. What is told is the median of the
//! twin's machine code, and to it the ratios of its PTX through the driver, of the `#[kernel]` with checks, and of the
//! kernel by directives without checks and with them; then how far the samples' quartiles are apart, and the lines of the
//! function with directives beside those of its peers. Results are checked first.

mod code;
#[path = "../driver.rs"]
mod driver;
mod openmp;
mod options;
#[path = "../cpu/peers.rs"]
#[allow(dead_code, reason = "of the peers there, gcc alone has these programs")]
mod peers;
mod timing;
mod twin;

use kiln::core::job::CompileOptions;
use kiln::core::runtime::DeviceKind;
use kiln::core::target::Target;
use kiln::prelude::*;
use kiln_suite::{
    CLAUSES, DIRECTED, Directed, Launcher, Lines, OnJit, STEPS, Size, Workload, without_checks,
};
use serde_json::json;
use timing::{clock, quartiles, runs_of_a_sample, time};
use twin::Twins;

fn main() -> kiln::Result<()> {
    let options = options::options();
    let chosen = || {
        let all = DIRECTED.iter().chain(STEPS).chain(CLAUSES);
        all.filter(|program| {
            let names = [program.benchmark, program.name];
            names.iter().any(|name| name.contains(&options.filter))
        })
    };
    let device = Device::best()?;
    let jits = [CompileOptions::default(), without_checks()].map(|compile| {
        Jit::builder()
            .device(device.clone())
            .compile(compile)
            .build()
    });
    let [checked, unchecked] = jits;
    let (checked, unchecked) = (checked?, unchecked?);
    let on_gpu = checked.device().info().kind == DeviceKind::Cuda;
    let size = if on_gpu { Size::Full } else { Size::Medium };
    let size = options.size.unwrap_or(size);
    if let Some(folder) = &options.write {
        return code::write_directed(folder, checked.target(), chosen(), size);
    }
    let twins = match checked.target() {
        Target::Ptx(target) => {
            let twins = chosen().map(|program| program.benchmark().twin);
            Twins::compile(twins.filter(|twin| !twin.is_empty()), target.sm)
        }
        _ => Twins::default(),
    };
    println!(
        "{:<28} {:>10} {:>10} {:>10} {:>10} {:>10} {:>8} {:>12} {:>8}",
        "program",
        "peer, ms",
        "its PTX",
        "#[kernel]",
        "unchecked",
        "checked",
        "spread",
        "lines",
        "OpenMP"
    );
    let mut rows = Vec::new();
    for program in chosen() {
        let row = measure(
            program,
            [&checked, &unchecked],
            &twins,
            size,
            options.samples,
        )?;
        row.print();
        rows.push(row);
    }
    for row in &rows {
        println!("{}", row.json());
    }
    Ok(())
}

/// Medians of a program, in milliseconds a run.
struct Row {
    program: &'static Directed,
    checked: f64,
    unchecked: f64,
    /// The `#[kernel]` with checks.
    by_hand: f64,
    /// nvcc's machine code, and its PTX through the driver.
    nvcc: Option<(f64, f64)>,
    /// C loops with OpenMP.
    openmp: Option<f64>,
    /// The largest distance of quartiles, as a part of the median.
    spread: f64,
}

impl Row {
    /// Lines with directives, of the `#[kernel]`s and of the twins of the program's folder.
    fn lines(&self) -> [usize; 3] {
        let benchmark = self.program.benchmark();
        let Lines { kiln, twin } = benchmark.lines();
        [Lines::of(self.program.source, "").kiln, kiln, twin]
    }

    fn print(&self) {
        let peer = self
            .nvcc
            .map_or(self.by_hand, |(machine_code, _)| machine_code);
        let ratio = |time: f64| format!("{:.3}", time / peer);
        let ptx = self.nvcc.map_or("-".to_owned(), |(_, ptx)| ratio(ptx));
        let openmp = self.openmp.map(|time| time / self.unchecked);
        let openmp = openmp.map_or("-".to_owned(), |ratio| format!("{ratio:.3}"));
        println!(
            "{:<28} {peer:>10.4} {ptx:>10} {:>10} {:>10} {:>10} {:>7.1}% {:>12} {openmp:>8}",
            self.program.name,
            ratio(self.by_hand),
            ratio(self.unchecked),
            ratio(self.checked),
            100.0 * self.spread,
            self.lines().map(|lines| lines.to_string()).join("/"),
        );
    }

    fn json(&self) -> serde_json::Value {
        let [directives, kiln, twin] = self.lines();
        json!({
            "name": format!("directives/{}", self.program.name),
            "unit": "ms",
            "checked": self.checked,
            "unchecked": self.unchecked,
            "kernel": self.by_hand,
            "nvcc": self.nvcc.map(|(machine_code, _)| machine_code),
            "nvcc_ptx": self.nvcc.map(|(_, ptx)| ptx),
            "openmp": self.openmp,
            "spread": self.spread,
            "lines": { "directives": directives, "kiln": kiln, "twin": twin },
        })
    }
}

fn measure(
    program: &'static Directed,
    [checked, unchecked]: [&Jit; 2],
    twins: &Twins,
    size: Size,
    samples: usize,
) -> kiln::Result<Row> {
    let benchmark = program.benchmark();
    // Which of the two inputs is run, and how.
    type Way<'a> = (usize, Box<dyn Launcher + 'a>);
    let mut inputs: [Box<dyn Workload>; 2] = [
        program.make(checked, size)?,
        (benchmark.make)(checked, size)?,
    ];
    let mut ways: Vec<Way<'_>> = vec![
        (0, Box::new(OnJit(checked))),
        (0, Box::new(OnJit(unchecked))),
        (1, Box::new(OnJit(checked))),
    ];
    for twin in twins.of(benchmark.twin).into_iter().flatten() {
        ways.push((1, Box::new(twin)));
    }
    let mut runs = Vec::new();
    for (input, way) in &mut ways {
        let workload = &mut inputs[*input];
        workload.reset(way.as_mut())?;
        workload.run(way.as_mut())?;
        if let Err(error) = workload.check() {
            panic!("{}: {error}", program.name);
        }
        runs.push(runs_of_a_sample(checked, workload.as_mut(), way.as_mut())?);
    }
    let mut times = vec![Vec::new(); ways.len()];
    let on_cpu = checked.device().info().kind != DeviceKind::Cuda;
    let mut openmp = on_cpu
        .then(|| openmp::peer(program.benchmark, size))
        .flatten();
    let mut openmp_times = Vec::new();
    for _ in 0..samples {
        openmp_times.extend(openmp.as_mut().map(|peer| openmp::time(peer, runs[1])));
        for (((input, way), times), &runs) in ways.iter_mut().zip(&mut times).zip(&runs) {
            let workload = inputs[*input].as_mut();
            times.push(time(checked, workload, way.as_mut(), runs)?);
        }
    }
    let spread = spread(&mut times);
    let median = |way: usize| times[way][times[way].len() / 2];
    Ok(Row {
        program,
        checked: median(0),
        unchecked: median(1),
        by_hand: median(2),
        openmp: openmp.map(|_| quartiles(&mut openmp_times)[1]),
        nvcc: (times.len() > 3).then(|| (median(3), median(4))),
        spread,
    })
}

/// Sorts the times of each way; the largest distance of quartiles, as a part of the median.
fn spread(times: &mut [Vec<f64>]) -> f64 {
    let all = times.iter_mut().map(|times| quartiles(times));
    let apart = all.map(|[low, median, high]| (high - low) / median);
    apart.fold(0.0, f64::max)
}
