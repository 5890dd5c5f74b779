//! The peers of `benches/cpu.rs`: programs of their own, set up by `cargo xtask bench-peers`.
//!
//! A peer is started with a kernel's name and a size. It fills its inputs, runs the kernel once and
//! prints `ready CHECKSUM`, or `none` if it has no such kernel. Then each line `N` on its input
//! makes it run the kernel N times and print the process CPU time and the wall time of one run, in
//! seconds. At the end of its input it ends. Between requests it is stopped.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::clock::Sample;

/// Where the peers' sources are, from the root of the workspace.
const SOURCES: &str = "benches/peers/cpu";

/// A line for each peer that is a Python program: its name, the program, and what that takes before kernel
/// and size. `cargo xtask bench-peers` tries them by it.
const STARTED: &str = include_str!("../peers/cpu/started.txt");

/// The peers by name, with what each is.
pub const PEERS: &[(&str, &str)] = &[
    (
        "gcc",
        "C loops, gcc -O3 -march=native -fopenmp -fno-math-errno",
    ),
    ("intel", "the same kernels in Intel's OpenCL for CPUs"),
    (
        "intel-uint",
        "the same with unsigned 32-bit indices, as Kiln's kernels have",
    ),
    ("pocl", "the same kernels in pocl"),
    ("numba", "numba loops, prange"),
];

/// The folder that `cargo xtask bench-peers` fills: beside the folders of cargo's own output.
pub fn folder() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let mut folders = program.ancestors().map(|f| f.join("kiln-peers"));
    folders.find(|folder| folder.is_dir())
}

/// The command that starts a peer, or why it cannot be started.
fn command(folder: Option<&Path>, peer: &str) -> Result<Command, String> {
    let missing = |what| format!("{what}; run `cargo xtask bench-peers`");
    let folder = folder.ok_or_else(|| missing("the peers are not set up".to_owned()))?;
    let program = folder.join(if peer == "gcc" { "loops" } else { "python" });
    if !program.is_file() {
        return Err(missing(format!("{} is not there", program.display())));
    }
    let mut command = Command::new(program);
    let mut words = (STARTED.lines().map(|line| line.split(' ')))
        .find_map(|mut words| (words.next() == Some(peer)).then_some(words))
        .into_iter()
        .flatten();
    command.args(words.next().map(|script| Path::new(SOURCES).join(script)));
    command.args(words);
    Ok(command)
}

/// A peer that has a kernel ready.
pub struct Peer {
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts a peer for a kernel and returns it with the checksum of its first run; `None` if it
    /// has no such kernel.
    ///
    /// # Errors
    /// What is missing, or what the peer printed instead of an answer.
    pub fn start(
        folder: Option<&Path>,
        peer: &str,
        kernel: &str,
        (size, threads): (usize, usize),
    ) -> Result<Option<(Peer, f64)>, String> {
        let threads = threads.to_string();
        let mut command = command(folder, peer)?;
        command.arg(kernel).arg(size.to_string());
        command
            .envs([
                ("OMP_NUM_THREADS", threads.as_str()),
                ("NUMBA_NUM_THREADS", &threads),
                ("POCL_MAX_PTHREAD_COUNT", &threads),
                ("POCL_CPU_MAX_CU_COUNT", &threads),
                // A thread that waits must not take time from the others.
                ("OMP_WAIT_POLICY", "passive"),
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|e| format!("cannot start: {e}"))?;
        let requests = child.stdin.take();
        let Some(answers) = child.stdout.take() else {
            return Err("it has no output".to_owned());
        };
        let mut peer = Peer {
            child,
            requests,
            answers: BufReader::new(answers),
        };
        let answer = peer.answer()?;
        match answer.split_once(' ') {
            None if answer == "none" => Ok(None),
            Some(("ready", sum)) => match sum.parse() {
                Ok(sum) => {
                    peer.signal("STOP")?;
                    Ok(Some((peer, sum)))
                }
                Err(_) => Err(format!("it answers `{answer}`")),
            },
            _ => Err(format!("it answers `{answer}`")),
        }
    }

    fn answer(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.answers.read_line(&mut line) {
            Ok(0) => Err("it ended without an answer; see its output above".to_owned()),
            Ok(_) => Ok(line.trim_end().to_owned()),
            Err(e) => Err(format!("its answer cannot be read: {e}")),
        }
    }

    /// Lets the process sleep or go on: threads that wait by looking again and again take time and
    /// cache from whatever is measured beside them.
    fn signal(&self, signal: &str) -> Result<(), String> {
        let process = self.child.id().to_string();
        let status = Command::new("kill").args(["-s", signal, &process]).status();
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("kill -s {signal}: {status}")),
            Err(e) => Err(format!("kill cannot be started: {e}")),
        }
    }

    /// Times `times` runs. The peer sleeps before and after.
    ///
    /// # Errors
    /// A peer that has ended or answers nonsense.
    pub fn sample(&mut self, times: u32) -> Result<Sample, String> {
        self.signal("CONT")?;
        let sample = self.awake_sample(times)?;
        self.signal("STOP")?;
        Ok(sample)
    }

    fn awake_sample(&mut self, times: u32) -> Result<Sample, String> {
        let Some(requests) = &mut self.requests else {
            return Err("it takes no requests".to_owned());
        };
        writeln!(requests, "{times}").map_err(|e| format!("it takes no request: {e}"))?;
        let answer = self.answer()?;
        let mut numbers = answer.split(' ').map(str::parse);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(cpu)), Some(Ok(wall))) => Ok(Sample { cpu, wall }),
            _ => Err(format!("it answers `{answer}`")),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // The end of its input ends it.
        self.requests = None;
        let _ = self.signal("CONT");
        let _ = self.child.wait();
    }
}
