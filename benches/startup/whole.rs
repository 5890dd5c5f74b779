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

/// The program: prints how long the device took to open, in microseconds, and the last value.
pub fn child(folder: PathBuf) -> kiln::Result<()> {
    let start = Instant::now();
    let device = Device::cuda(0)?;
    println!("{}", micros(start));
    let cache = CacheFolder::At(folder);
    let jit = Jit::builder().device(device).cache(cache).build()?;
    let (x, mut y) = (vec![1.0f32; COUNT], vec![2.0f32; COUNT]);
    let on_device = jit.upload(&x)?;
    let mut result = jit.upload(&y)?;
    let saxpy = kernels::saxpy()?;
    for _ in 0..LAUNCHES {
        let args = args!(3.0f32, &on_device, &mut result);
        jit.launch(&saxpy, grid_for(COUNT, 256), 256, args)?;
    }
    result.read_into(0, &mut y)?;
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
    let row = "GPU, a whole program, the context left out";
    match nvcc.is_empty() {
        true => report.row(row, median(&kiln), "us"),
        false => report.against(row, median(&kiln), "us", "nvcc's twin", median(&nvcc)),
    }
    if !nvcc.is_empty() {
        report.against(
            "that ratio",
            median(&kiln) / median(&nvcc),
            "",
            "goal",
            GOAL,
        );
    }
}

/// Writes a file that may be run.
fn write_program(file: &Path, bytes: &[u8]) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(file, bytes).expect("the temporary folder can be written");
    let runs = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(file, runs).expect("the file is this process's");
}

/// A process's time without its context's.
trait Timed {
    /// Runs it to its end; the microseconds, less those that its first line says.
    fn output_and_time(&mut self) -> f64;
}

impl Timed for Command {
    fn output_and_time(&mut self) -> f64 {
        let start = Instant::now();
        let output = self.output().expect("the program runs");
        let all = micros(start);
        let text = String::from_utf8_lossy(&output.stdout);
        let mut lines = text.lines().map(str::parse::<f64>);
        let (Some(Ok(open)), Some(Ok(last))) = (lines.next(), lines.next()) else {
            panic!("{text}{}", String::from_utf8_lossy(&output.stderr));
        };
        assert_eq!(last, 302.0, "both programs compute the same");
        all - open
    }
}
