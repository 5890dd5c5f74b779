//! The machine code of the programs of `benches/suite` beside that of their twins, for sm_90.
//!
//! `programs.txt` has what `ptxas` makes of each kernel, by nvcc and by Kiln without checks and with them, so that each
//! change of it is seen: `UPDATE_EXPECT=1 cargo xtask test -p kiln-tests programs` records anew what Kiln makes, and
//! what nvcc makes where there is one.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::Command;

use expect_test::expect_file;
use kiln::core::target::{PtxTarget, Target};
use kiln::prelude::*;
use kiln_suite::{BENCHMARKS, Launch, Launcher, Size, unchecked};

use super::count::Folder;
use super::machine::{Machine, of_ptx};

const SM: u32 = 90;

/// What was recorded, a line a kernel.
const RECORDED: &str = include_str!("programs.txt");

const HEAD: &str =
    "registers, bytes of spills, WARPSYNCs, instructions, those of the longest innermost loop\n";

/// Looks at the code of launches, and runs none.
struct Look<'a> {
    jit: &'a Jit,
    /// Machine code by the name of the twin's kernel.
    found: BTreeMap<&'static str, Machine>,
}

impl Launcher for Look<'_> {
    fn launch(&mut self, launch: &Launch<'_>) -> kiln::Result<()> {
        if self.found.contains_key(launch.twin) {
            return Ok(());
        }
        let inspection = self.jit.inspect(launch.kernel, launch.args)?;
        let ptx = inspection.ptx()?;
        let entry = ptx
            .split_once(".entry ")
            .and_then(|(_, rest)| rest.split_once('('));
        let (entry, _) = entry.expect("a kernel has an entry");
        if let Some(machine) = of_ptx(ptx, entry, SM) {
            self.found.insert(launch.twin, machine);
        }
        Ok(())
    }
}

fn jit(has_checks: bool) -> kiln::Result<Jit> {
    let builder = Jit::builder()
        .device(Device::cpu())
        .target(Target::Ptx(PtxTarget::for_sm(SM)));
    match has_checks {
        true => builder.build(),
        false => builder
            .hooks(kiln::hooks::standard().first(unchecked()))
            .build(),
    }
}

/// What nvcc makes of the kernels of a twin; `None` without one.
fn of_nvcc(source: &str, kernel: &str) -> Option<Machine> {
    let folder = Folder::new(&format!("twin-{kernel}"));
    let (twin, ptx) = (folder.0.join("twin.cu"), folder.0.join("twin.ptx"));
    std::fs::write(&twin, source).expect("the temporary folder can be written");
    let mut command = Command::new("nvcc");
    command
        .args(["-O3", &format!("-arch=sm_{SM}"), "-ptx"])
        .arg(&twin)
        .arg("-o")
        .arg(&ptx);
    let done = command.output().ok()?;
    let error = String::from_utf8_lossy(&done.stderr);
    assert!(
        done.status.success(),
        "nvcc on the twin of {kernel}: {error}"
    );
    of_ptx(
        &std::fs::read_to_string(&ptx).expect("nvcc wrote it"),
        kernel,
        SM,
    )
}

/// What nvcc made of a kernel, as it was recorded.
fn recorded(name: &str) -> Option<&'static str> {
    let start = format!("{name:44} | ");
    let line = RECORDED
        .lines()
        .find_map(|line| line.strip_prefix(&start))?;
    line.split(" | ").next()
}

#[test]
fn machine_code_is_what_is_recorded() -> kiln::Result<()> {
    if std::env::var_os("KILN_PTXAS").is_none() {
        println!("no ptxas: nothing is compared");
        return Ok(());
    }
    let (checked, unchecked) = (jit(true)?, jit(false)?);
    let mut table = String::from(HEAD);
    for benchmark in BENCHMARKS {
        let mut workload = (benchmark.make)(&checked, Size::Small)?;
        let mut look = |jit| {
            let found = BTreeMap::new();
            let mut look = Look { jit, found };
            workload.run(&mut look).map(|()| look.found)
        };
        let (with, without) = (look(&checked)?, look(&unchecked)?);
        for (kernel, with) in with {
            let name = format!("{}: {kernel}", benchmark.name);
            let nvcc = of_nvcc(benchmark.twin, kernel).map(|machine| machine.to_string());
            let nvcc = nvcc
                .as_deref()
                .or(recorded(&name))
                .unwrap_or("not recorded");
            let _ = writeln!(table, "{name:44} | {nvcc} | {} | {with}", without[kernel]);
        }
    }
    expect_file!["programs.txt"].assert_eq(&table);
    Ok(())
}

#[test]
fn every_program_is_a_case_of_the_suite() {
    let programs: Vec<&str> = BENCHMARKS.iter().map(|benchmark| benchmark.name).collect();
    assert_eq!(suite::programs::NAMES, programs);
}
