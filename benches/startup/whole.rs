//! A whole program with its kernel on disk beside its CUDA C++ twin, `benches/peers/whole.cu`: each process by its
//! parent's clock, less what the process says its context took.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use kiln::core::cache::CacheFolder;
use kiln::prelude::*;

use crate::driver;
use crate::report::{Report, median};
use crate::{kernels, micros, scratch};

/// Elements of each vector, and launches, as in the twin.
const COUNT: usize = 1 << 24;
const LAUNCHES: usize = 100;

/// The ratio to meet.
const GOAL: f64 = 1.02;

/// The argument of a process that is the program.
pub const CHILD: &str = "--whole";

/// What the programs say they took, a line each; the context is left out of the comparison.
const PARTS: [&str; 6] = [
    "the context",
    "vectors on the host",
    "to the device",
    "launches",
    "from the device",
    "the end of what is on it",
];

/// The program: prints how long each part took, in microseconds, and the last value.
pub fn child(folder: PathBuf) -> kiln::Result<()> {
    let mut start = Instant::now();
    let mut part = || {
        println!("{}", micros(start));
        start = Instant::now();
    };
    let device = Device::cuda(0)?;
    part();
    let (x, mut y) = (vec![1.0f32; COUNT], vec![2.0f32; COUNT]);
    part();
    let cache = CacheFolder::At(folder);
    let jit = Jit::builder().device(device).cache(cache).build()?;
    let on_device = jit.upload(&x)?;
    let mut result = jit.upload(&y)?;
    part();
    let saxpy = kernels::saxpy()?;
    for _ in 0..LAUNCHES {
        let args = args!(3.0f32, &on_device, &mut result);
        jit.launch(&saxpy, grid_for(COUNT, 256), 256, args)?;
    }
    part();
    result.read_into(0, &mut y)?;
    part();
    drop((saxpy, on_device, result, jit));
    part();
    println!("{}", y[COUNT - 1]);
    Ok(())
}

/// Both programs, process by process in turn.
pub fn compare(report: &mut Report, sm: u32, count: usize) {
    let folder = scratch("whole");
    let twin = driver::source("whole.cu");
    let twin = driver::compiled(&twin, sm, "-std=c++17").map(|program| {
        let file = folder.join("twin");
        write_program(&file, &program);
        file
    });
    let this = std::env::current_exe().expect("this program has a file");
    let ours = || {
        Command::new(&this)
            .arg(CHILD)
            .arg(&folder)
            .output_and_time()
    };
    // Writes what the others find.
    ours();
    let (mut kiln, mut nvcc) = (Vec::new(), Vec::new());
    for _ in 0..count {
        kiln.push(ours());
        nvcc.extend(
            twin.as_ref()
                .map(|file| Command::new(file).output_and_time()),
        );
    }
    // What is left in the temporary folder harms nobody.
    let _ = std::fs::remove_dir_all(&folder);
    let figure = |runs: &[Run], of: &dyn Fn(&Run) -> f64| {
        let values: Vec<f64> = runs.iter().map(of).collect();
        median(&values)
    };
    let mut add = |row: &str, of: &dyn Fn(&Run) -> f64| {
        let ours = figure(&kiln, of);
        match nvcc.is_empty() {
            true => report.row(row, ours, "us"),
            false => report.against(row, ours, "us", "nvcc's twin", figure(&nvcc, of)),
        }
    };
    add(
        "GPU, a whole program, the context left out",
        &Run::without_context,
    );
    for (at, part) in PARTS.iter().enumerate() {
        add(&format!("of it, {part}"), &|run| run.parts[at]);
    }
    add("of it, the process's begin and end", &Run::around);
    if !nvcc.is_empty() {
        let [ours, twin] = [&kiln, &nvcc].map(|runs| figure(runs, &Run::without_context));
        report.against("that ratio", ours / twin, "", "goal", GOAL);
    }
}

/// Writes a file that may be run.
fn write_program(file: &Path, bytes: &[u8]) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(file, bytes).expect("the temporary folder can be written");
    let runs = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(file, runs).expect("the file is this process's");
}

/// What a process took, in microseconds.
struct Run {
    all: f64,
    parts: [f64; PARTS.len()],
}

impl Run {
    fn without_context(&self) -> f64 {
        self.all - self.parts[0]
    }

    /// What is in no part: until `main`, and from the last value on.
    fn around(&self) -> f64 {
        self.all - self.parts.iter().sum::<f64>()
    }
}

/// A process's times.
trait Timed {
    /// Runs it to its end.
    fn output_and_time(&mut self) -> Run;
}

impl Timed for Command {
    fn output_and_time(&mut self) -> Run {
        let start = Instant::now();
        let output = self.output().expect("the program runs");
        let all = micros(start);
        let text = String::from_utf8_lossy(&output.stdout);
        let numbers: Vec<f64> = text.lines().filter_map(|line| line.parse().ok()).collect();
        let Some((last, parts)) = numbers.split_last() else {
            panic!("{text}{}", String::from_utf8_lossy(&output.stderr));
        };
        assert_eq!(*last, 302.0, "both programs compute the same");
        let parts = parts.try_into().expect("a line for each part");
        Run { all, parts }
    }
}
