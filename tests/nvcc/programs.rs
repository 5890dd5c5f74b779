//! The machine code of the programs of `benches/suite` beside that of their twins, for sm_90.
//!
//! `programs.txt` has what `ptxas` makes of each kernel, by nvcc and by Kiln without checks and with them, so that each
//! change of it is seen: `UPDATE_EXPECT=1 cargo xtask test -p kiln-tests programs` records anew what Kiln makes, and
//! what nvcc makes where there is one.

use std::collections::BTreeMap;
use std::fmt::Write;

use expect_test::expect_file;
use kiln::core::job::CompileOptions;
use kiln::prelude::*;
use kiln_suite::{BENCHMARKS, Launch, Launcher, Lines, Size, without_checks};

use super::machine::{HEAD, Machine, SM, jit, of_entry, of_nvcc, recorded};

/// What was recorded, a line a kernel.
const RECORDED: &str = include_str!("programs.txt");

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
        if let Some(machine) = of_entry(inspection.ptx()?, SM) {
            self.found.insert(launch.twin, machine);
        }
        Ok(())
    }
}

#[test]
fn machine_code_is_what_is_recorded() -> kiln::Result<()> {
    if std::env::var_os("KILN_PTXAS").is_none() {
        println!("no ptxas: nothing is compared");
        return Ok(());
    }
    let (checked, unchecked) = (jit(CompileOptions::default())?, jit(without_checks())?);
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
            let nvcc = of_nvcc(benchmark.twin, kernel, SM).map(|machine| machine.to_string());
            let nvcc = nvcc
                .as_deref()
                .or(recorded(RECORDED, &name))
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

#[test]
fn lines_are_those_of_kernels_and_what_they_need() {
    let kiln = "\
//! A file.

const TWIN: &str = \"\";
pub const PROGRAM: Benchmark = Benchmark {
    name: \"program\",
};

const BLOCK: usize = 256;
const NONE: Point = Point {
    x: 0,
};

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Point {
    x: u32,
}

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Other(u32);

struct Host(u32);

/// A kernel.
#[kernel]
fn kernel(x: &mut [u32]) {
    // Why.
    x[0] = 1;

}

impl Host {
    fn host() {}
}
";
    let twin = "// A twin.\n\nvoid kernel() {\n}\n";
    let found = Lines::of(kiln, twin);
    assert_eq!(found, Lines { kiln: 16, twin: 2 });
}
