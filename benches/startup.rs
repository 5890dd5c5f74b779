//! How long a new process takes to its first result: each kernel compiled, and found on disk.
//!
//! `cargo bench --bench startup`. The figures to meet, with what is kept on disk and the device open: 2 ms for one
//! kernel on a GPU and 0.3 ms for each further, 3 ms on a CPU; compiled in a process that has compiled before, a saxpy
//! on a GPU in 15 ms. The driver's own cache is off. On a GPU the others that compile while a program runs are beside
//! it, and a whole program beside its CUDA C++ twin, to be met by 1.02.
//!
//! - `--samples N`: so many processes a figure, 20 unless it is said.
//!
//! Each sample is a process of its own, which says how long it took from the open device on; what the whole process
//! took is its parent's clock.

mod driver;
#[path = "../tests/kernels/mod.rs"]
mod kernels;
#[path = "startup/peers.rs"]
mod peers;
mod report;
#[path = "startup/whole.rs"]
mod whole;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use kiln::core::cache::CacheFolder;
use kiln::core::target::Target;
use kiln::prelude::*;
use report::{Report, median};

/// Processes a figure, unless the command line says another number.
const SAMPLES: usize = 20;

/// Kernels behind the first.
const FURTHER: u32 = 8;

/// The argument of a process that is measured.
const CHILD: &str = "--measured";

/// The goals, in microseconds: to the first result, and for each further kernel.
const GOAL_GPU: [f64; 2] = [2000.0, 300.0];
const GOAL_CPU: f64 = 3000.0;

fn main() -> kiln::Result<()> {
    let mut args = std::env::args_os().skip_while(|arg| arg != whole::CHILD);
    if let Some(folder) = args.nth(1) {
        return whole::child(folder.into());
    }
    let mut args = std::env::args_os().skip_while(|arg| arg != CHILD).skip(1);
    if let Some(device) = args.next() {
        let folder = args.next().map(PathBuf::from);
        return child(device == "cuda", folder);
    }
    let mut args = std::env::args()
        .skip_while(|arg| arg != "--samples")
        .skip(1);
    let samples = args.next().and_then(|count| count.parse().ok());
    let samples = samples.unwrap_or(SAMPLES).max(1);
    let mut report = Report::new("startup");
    device(&mut report, ("CPU", "cpu"), samples);
    if let Target::Ptx(target) = Jit::new()?.target() {
        let compiled = device(&mut report, ("GPU", "cuda"), samples);
        peers::compare(&mut report, compiled);
        whole::compare(&mut report, target.sm, samples);
    }
    report.print();
    Ok(())
}

/// What a process measured, in microseconds.
#[derive(Copy, Clone)]
struct Sample {
    /// From its begin to its end.
    process: f64,
    /// To the open device.
    open: f64,
    /// From there to the first result.
    first: f64,
    /// For each kernel behind it.
    further: f64,
}

/// What a kernel takes that is compiled behind others, in microseconds.
fn device(report: &mut Report, (name, device): (&str, &str), count: usize) -> f64 {
    let folder = scratch("kept");
    let measure = |folder: Option<&Path>| {
        let samples = (0..count).map(|_| process(device, folder));
        samples.collect::<Vec<_>>()
    };
    let cold = measure(None);
    // Writes what the others find.
    process(device, Some(&folder));
    let warm = measure(Some(&folder));
    // What is left in the temporary folder harms nobody.
    let _ = std::fs::remove_dir_all(&folder);
    let compiled = median(&cold.iter().map(|s| s.further).collect::<Vec<_>>());
    for (which, samples) in [("compiled", cold), ("from disk", warm)] {
        let figure = |of: fn(&Sample) -> f64| median(&samples.iter().map(of).collect::<Vec<_>>());
        let row = |what: &str| format!("{name}, {which}: {what}");
        let goals = match (device, which) {
            ("cuda", "from disk") => GOAL_GPU.map(Some),
            (_, "from disk") => [Some(GOAL_CPU), None],
            ("cuda", _) => [None, Some(peers::GOAL)],
            _ => [None, None],
        };
        let mut add = |what: &str, value: f64, goal: Option<f64>| match goal {
            Some(goal) => report.against(&row(what), value, "us", "goal", goal),
            None => report.row(&row(what), value, "us"),
        };
        add("to the open device", figure(|s| s.open), None);
        add(
            "from there to the first result",
            figure(|s| s.first),
            goals[0],
        );
        add("each further kernel", figure(|s| s.further), goals[1]);
        add("whole process", figure(|s| s.process), None);
    }
    compiled
}

/// A folder of this process among those that come and go, made.
fn scratch(what: &str) -> PathBuf {
    let name = format!("kiln-startup-{what}-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).expect("the temporary folder can be written");
    folder
}

/// Runs this program once to be measured.
fn process(device: &str, folder: Option<&Path>) -> Sample {
    let program = std::env::current_exe().expect("this program has a file");
    let mut command = Command::new(program);
    command.args([CHILD, device]).args(folder);
    command.env("CUDA_CACHE_DISABLE", "1");
    let start = Instant::now();
    let output = command.output().expect("this program runs");
    let process = micros(start);
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<f64> = text
        .split_whitespace()
        .filter_map(|n| n.parse().ok())
        .collect();
    let [open, first, further] = numbers[..] else {
        panic!("{text}{}", String::from_utf8_lossy(&output.stderr));
    };
    Sample {
        process,
        open,
        first,
        further,
    }
}

/// A process that is measured: prints three figures.
fn child(cuda: bool, folder: Option<PathBuf>) -> kiln::Result<()> {
    let start = Instant::now();
    let device = match cuda {
        true => Device::cuda(0)?,
        false => Device::cpu(),
    };
    let cache = folder.map_or(CacheFolder::Off, CacheFolder::At);
    let jit = Jit::builder().device(device).cache(cache).build()?;
    // The context is made, and memory was there once.
    drop(jit.upload(&[0.0f32; 256])?);
    jit.synchronize()?;
    let open = micros(start);

    let start = Instant::now();
    let saxpy = kernels::saxpy()?;
    let x = jit.upload(&[1.0f32; 256])?;
    let mut y = jit.upload(&[2.0f32; 256])?;
    jit.launch(&saxpy, 1, 256, args!(3.0f32, &x, &mut y))?;
    assert_eq!(y.to_vec()?, [5.0; 256]);
    let first = micros(start);

    let start = Instant::now();
    for n in 0..FURTHER {
        let kernel = another_saxpy(n)?;
        jit.launch(&kernel, 1, 256, args!(3.0f32, &x, &mut y))?;
    }
    jit.synchronize()?;
    let further = micros(start) / f64::from(FURTHER);
    println!("{open} {first} {further}");
    Ok(())
}

/// `y = a x + y + n`, a kernel of its own for each number.
fn another_saxpy(n: u32) -> kiln::Result<Kernel> {
    Kernel::build(&format!("saxpy_{n}"), |k| {
        let t = k.ty::<f32>();
        let (a, x, y) = (k.param("a", t), k.slice("x", t), k.slice_mut("y", t));
        let i = k.global_id().x();
        k.if_(i.lt(y.len()), || {
            y.at(i).set(a * x.at(i) + y.at(i) + k.lit(t, f64::from(n)))
        });
    })
}

fn micros(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e6
}
