//! The programs that arrays are compared with: CUDA C++ with CUB and copies by the driver, torch and CuPy in Python,
//! and on a CPU loops of OpenMP and NumPy. Each answers requests, so that its samples and ours take turns.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::driver;

/// The parts of `arrays.cu`, which are compiled side by side.
const PARTS: u32 = 3;

/// A program that answers.
struct Program {
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Program {
    fn start(mut command: Command) -> Option<Program> {
        // A thread that waits must not take time from the others.
        command.env("OMP_WAIT_POLICY", "passive");
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = pipes.spawn().ok()?;
        let (requests, answers) = (child.stdin.take(), child.stdout.take()?);
        Some(Program {
            child,
            requests,
            answers: BufReader::new(answers),
        })
    }

    /// What it answers: milliseconds, unless it has no such work, or is not there any more.
    fn ask(&mut self, request: &str) -> Option<f64> {
        writeln!(self.requests.as_mut()?, "{request}").ok()?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer).ok()?;
        answer.trim_end().parse().ok()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The end of its input ends it.
        self.requests = None;
        // A program that has ended before has said why.
        let _ = self.child.wait();
    }
}

/// All that are on this machine, for one kind of device.
pub struct Peers {
    programs: Vec<Program>,
    folder: PathBuf,
}

impl Peers {
    /// None, as where only ours matters.
    pub fn none() -> Peers {
        Peers {
            programs: Vec::new(),
            folder: PathBuf::new(),
        }
    }

    /// Those of a GPU of this compute capability, where nvcc is, and Python's.
    pub fn of_gpu(sm: u32, compiled: bool) -> Peers {
        let folder = folder();
        let source = driver::peers().join("arrays.cu");
        // Python takes seconds to import what it needs.
        let python = python("gpu", compiled);
        let parts = (0..PARTS).filter_map(|part| {
            let program = folder.join(format!("part{part}"));
            let mut nvcc = Command::new("nvcc");
            nvcc.args(["-O3", "--extended-lambda", &format!("-DPART={part}")]);
            nvcc.arg(format!("-arch=sm_{sm}")).arg("-o").arg(&program);
            Some((nvcc.arg(&source).spawn().ok()?, program))
        });
        // All are started before the first is waited for.
        let parts: Vec<_> = parts.collect();
        let programs = parts.into_iter().filter_map(|(mut nvcc, program)| {
            let status = nvcc.wait().ok()?;
            assert!(status.success(), "nvcc rejects {}", source.display());
            Program::start(Command::new(program))
        });
        let programs = programs.chain(python).collect();
        Peers { programs, folder }
    }

    /// Those of a CPU, where g++ is, and Python's.
    pub fn of_cpu() -> Peers {
        let folder = folder();
        let source = driver::peers().join("cpu/arrays.cpp");
        let program = folder.join("loops");
        let mut gcc = Command::new("g++");
        gcc.args(["-O3", "-march=native", "-fopenmp", "-fno-math-errno", "-o"]);
        let loops = match gcc.arg(&program).arg(&source).status() {
            Ok(status) if status.success() => Program::start(Command::new(program)),
            // No compiler, or one without OpenMP, which says so.
            Ok(_) | Err(_) => None,
        };
        let programs = loops.into_iter().chain(python("cpu", false)).collect();
        Peers { programs, folder }
    }

    /// A sample of a work, from the program that has it.
    pub fn sample(&mut self, request: &str) -> Option<f64> {
        let mut answers = self.programs.iter_mut().map(|program| program.ask(request));
        answers.find_map(|answer| answer)
    }

    /// Has all give back what the last work needed.
    pub fn rest(&mut self) {
        for program in &mut self.programs {
            // There is no such work.
            program.ask("rest");
        }
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        self.programs.clear();
        // What is left in the temporary folder harms nobody.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The program in Python for a kind of device.
fn python(device: &str, compiled: bool) -> Option<Program> {
    let mut python = Command::new("python3");
    python.arg(driver::peers().join("arrays.py")).arg(device);
    if compiled {
        python.arg("--compiled");
    }
    Program::start(python)
}

/// A folder of this process among those that come and go.
fn folder() -> PathBuf {
    let folder = std::env::temp_dir().join(format!("kiln-arrays-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the temporary folder can be written");
    folder
}
