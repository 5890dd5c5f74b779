//! The machine code of kernels that have no twin (`benches/suite/strangers`), without checks and with them, for sm_90.
//!
//! `strangers.txt` has what `ptxas` makes of each, and which checks are left ([`left`](super::left)), so that each change of it
//! is seen. `UPDATE_EXPECT=1 cargo xtask test -p kiln-tests strangers` records anew.

use std::fmt::Write;

use expect_test::expect_file;
use kiln::core::hook::HookSet;
use kiln::core::job::CompileOptions;
use kiln::prelude::*;
use kiln_suite::{Launch, Launcher, OnJit, STRANGERS, Size, without_checks};

use super::left::{self, Counting, Left};
use super::machine::{Assembled, HEAD, Machine, SM, jit, machines};

/// Looks at the code of a launch, and runs none.
struct Look<'a> {
    /// Without checks, and with them.
    jits: &'a [Jit; 2],
    counting: &'a Counting,
    found: Option<([Assembled; 2], Left)>,
}

impl Launcher for Look<'_> {
    fn launch(&mut self, launch: &Launch<'_>) -> kiln::Result<()> {
        let mut ways = Vec::new();
        for jit in self.jits {
            let inspection = jit.inspect(launch.kernel, launch.args)?;
            ways.extend(Assembled::of_entry(inspection.ptx()?, SM));
        }
        self.counting.jit.inspect(launch.kernel, launch.args)?;
        let ways = ways.try_into().ok();
        self.found = ways.map(|ways| (ways, self.counting.last()));
        Ok(())
    }
}

#[test]
fn machine_code_of_strangers_is_what_is_recorded() -> kiln::Result<()> {
    if std::env::var_os("KILN_PTXAS").is_none() {
        println!("no ptxas: nothing is compared");
        return Ok(());
    }
    let jits = [jit(without_checks())?, jit(CompileOptions::default())?];
    let counting = Counting::new()?;
    let of = "without checks | with checks";
    let mut table = format!("{}: {of} | {}\n", HEAD.trim_end(), left::HEAD);
    let (mut rows, mut assembled) = (Vec::new(), Vec::new());
    for stranger in STRANGERS {
        let mut look = Look {
            jits: &jits,
            counting: &counting,
            found: None,
        };
        (stranger.make)(&jits[0], Size::Small)?.run(&mut look)?;
        let (ways, left) = look.found.expect("there is a ptxas");
        rows.push((stranger.name, left));
        assembled.extend(ways);
    }
    let Some(machines) = machines(assembled, SM) else {
        println!("no nvdisasm: nothing is compared");
        return Ok(());
    };
    for ((name, left), ways) in rows.into_iter().zip(machines.chunks(2)) {
        let ways: Vec<String> = ways.iter().map(Machine::to_string).collect();
        let _ = writeln!(table, "{name:32} | {} | {left}", ways.join(" | "));
    }
    expect_file!["strangers.txt"].assert_eq(&table);
    Ok(())
}

#[test]
fn strangers_compute_the_same_with_checks_and_without() -> kiln::Result<()> {
    let device = Device::cpu();
    let with = |compile, hooks| {
        let builder = Jit::builder().device(device.clone()).compile(compile);
        builder.hooks(hooks).build()
    };
    let jits = [
        with(CompileOptions::default(), HookSet::new())?,
        with(without_checks(), kiln::hooks::standard())?,
        with(CompileOptions::default(), kiln::hooks::standard())?,
    ];
    for stranger in STRANGERS {
        let mut workload = (stranger.make)(&jits[0], Size::Small)?;
        for jit in &jits {
            workload.reset(&mut OnJit(jit))?;
            workload.run(&mut OnJit(jit))?;
            if let Err(error) = workload.check() {
                panic!("{}: {error}", stranger.name);
            }
        }
    }
    Ok(())
}
