//! The machine code of the programs of `benches/suite` beside that of their twins, for sm_90.
//!
//! `programs.txt` has what `ptxas` makes of each kernel, by nvcc and by Kiln without checks, with them, and with indices that
//! are clamped, and which checks are left ([`left`](super::left)), so that each change of it is seen; a kernel that several
//! programs launch is there once.
//! `UPDATE_EXPECT=1 cargo xtask test -p kiln-tests programs` records anew what Kiln makes, and what nvcc makes where there
//! is one.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;

use expect_test::expect_file;
use kiln::core::job::CompileOptions;
use kiln::prelude::*;
use kiln_suite::{BENCHMARKS, Launch, Launcher, Lines, Size, without_checks};

use super::left::{self, Counting, Left};
use super::machine::{Assembled, HEAD, Machine, SM, jit, machines, of_nvcc, recorded};

/// What was recorded, a line a kernel.
const RECORDED: &str = include_str!("programs.txt");

/// Looks at the code of launches, and runs none.
struct Look<'a> {
    /// Without checks, with them, with indices that are clamped.
    jits: &'a [Jit; 3],
    counting: &'a Counting,
    /// The kernels that are known by programs before: file and name.
    known: &'a mut HashSet<(&'static str, &'static str)>,
    /// The file of the twin.
    file: &'static str,
    /// Machine code in each way, by the name of the twin's kernel.
    found: BTreeMap<&'static str, ([Assembled; 3], Left)>,
}

impl Launcher for Look<'_> {
    fn launch(&mut self, launch: &Launch<'_>) -> kiln::Result<()> {
        if !self.known.insert((self.file, launch.twin)) {
            return Ok(());
        }
        let mut ways = Vec::new();
        for jit in self.jits {
            let inspection = jit.inspect(launch.kernel, launch.args)?;
            ways.extend(Assembled::of_entry(inspection.ptx()?, SM));
        }
        if let Ok(ways) = ways.try_into() {
            self.counting.jit.inspect(launch.kernel, launch.args)?;
            self.found.insert(launch.twin, (ways, self.counting.last()));
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
    let checked = CompileOptions::default();
    let clamped = CompileOptions::default().clamped();
    let jits = [jit(without_checks())?, jit(checked)?, jit(clamped)?];
    let counting = Counting::new()?;
    let of = "of nvcc | without checks | with checks | clamped";
    let mut table = format!("{}: {of} | {}\n", HEAD.trim_end(), left::HEAD);
    let (mut known, mut rows, mut assembled) = (HashSet::new(), Vec::new(), Vec::new());
    for benchmark in BENCHMARKS {
        let mut workload = (benchmark.make)(&jits[0], Size::Small)?;
        let mut look = Look {
            jits: &jits,
            counting: &counting,
            known: &mut known,
            file: benchmark.twin,
            found: BTreeMap::new(),
        };
        workload.run(&mut look)?;
        for (kernel, (ways, left)) in look.found {
            rows.push((benchmark, kernel, left));
            assembled.extend(ways);
        }
    }
    let Some(machines) = machines(assembled, SM) else {
        println!("no nvdisasm: nothing is compared");
        return Ok(());
    };
    for ((benchmark, kernel, left), ways) in rows.into_iter().zip(machines.chunks(3)) {
        let name = format!("{}: {kernel}", benchmark.name);
        let nvcc = of_nvcc(benchmark.twin, kernel, SM).map(|machine| machine.to_string());
        let nvcc = nvcc
            .as_deref()
            .or(recorded(RECORDED, &name))
            .unwrap_or("not recorded");
        let ways: Vec<String> = ways.iter().map(Machine::to_string).collect();
        let _ = writeln!(table, "{name:44} | {nvcc} | {} | {left}", ways.join(" | "));
    }
    expect_file!["programs.txt"].assert_eq(&table);
    Ok(())
}

#[test]
fn no_kernel_spills_where_nvccs_does_not() {
    for line in RECORDED.lines().skip(1) {
        let machines = line.split('|').skip(1).take(4);
        // Behind the registers.
        let spills = machines.map(|machine| machine.split_whitespace().nth(1)?.parse().ok());
        let spills: Option<Vec<usize>> = spills.collect();
        let [nvcc, ours @ ..] = &spills.expect("numbers are recorded")[..] else {
            panic!("nothing is recorded: {line}");
        };
        assert!(ours.iter().all(|ours| ours <= nvcc), "{line}");
    }
}

#[test]
fn twins_say_what_kernels_say() {
    for program in BENCHMARKS {
        let name = program.name;
        let (pragmas, unrolled) = (
            program.twin.matches("#pragma"),
            program.source.matches("#[unroll"),
        );
        assert!(
            pragmas.count() <= unrolled.count(),
            "{name}: a pragma that no loop of a kernel has"
        );
        for kernel in program.twin.split("__global__").skip(1) {
            let (head, _) = kernel.split_once('{').expect("a kernel has a body");
            let [pointers, restricted] =
                ["*", "*__restrict__"].map(|text| head.matches(text).count());
            assert_eq!(
                pointers, restricted,
                "{name}: pointers of a twin that may be of one memory:{head}"
            );
        }
    }
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
