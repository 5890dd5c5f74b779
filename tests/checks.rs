//! The checking mode: every planted mistake is found, with the lines and threads it is at, and no
//! kernel without one is accused.

#[path = "checks/barriers.rs"]
mod barriers;
#[path = "checks/bounds.rs"]
mod bounds;
#[path = "checks/memory.rs"]
mod memory;
#[path = "checks/races.rs"]
mod races;
mod suite;
#[path = "checks/texts.rs"]
mod texts;

use kiln::core::launch::KernelFault;
use kiln::core::runtime::CpuOptions;
use kiln::prelude::*;
use kiln::{Error, Finding};

/// Threads of a block of most cases.
const THREADS: u32 = 32;

/// A `Jit` whose launches run in the interpreter, with these checks if there are any.
fn jit(checks: Checks) -> Jit {
    // With checks the device's own choice must not matter.
    let device = Device::cpu_with(CpuOptions {
        interpret: checks.is_none(),
        ..CpuOptions::default()
    });
    let options = JitOptions {
        checks,
        ..JitOptions::default()
    };
    Jit::with(device, kiln::hooks::standard(), options)
}

fn kernel(name: &str, describe: impl FnOnce(&KernelBuilder)) -> Kernel {
    match Kernel::build(name, describe) {
        Ok(kernel) => kernel,
        Err(error) => panic!("{name}: {error}"),
    }
}

/// A launch of one case: what it is given.
#[derive(Copy, Clone)]
struct Shape {
    grid: u32,
    block: [u32; 3],
    /// Dynamic shared memory in bytes.
    dynamic: u32,
}

impl Shape {
    const BLOCK: Shape = Shape {
        grid: 1,
        block: [THREADS, 1, 1],
        dynamic: 4 * THREADS,
    };
    const GRID: Shape = Shape {
        grid: 3,
        ..Shape::BLOCK
    };

    const fn block2(x: u32, y: u32) -> Shape {
        Shape {
            block: [x, y, 1],
            ..Shape::BLOCK
        }
    }
}

/// Launches a kernel that takes one `mut` slice of 256 numbers, `out`.
fn launch(jit: &Jit, kernel: &Kernel, shape: Shape) -> kiln::Result<()> {
    let mut out = jit.zeros::<u32>(256)?;
    let config = LaunchConfig::new(shape.grid, shape.block).shared_bytes(shape.dynamic);
    jit.launch_with(kernel, config, args!(&mut out))?;
    jit.synchronize()
}

/// What a launch finds.
#[track_caller]
fn finding(what: &str, result: kiln::Result<()>) -> Finding {
    match result {
        Err(Error::Finding(finding)) => *finding,
        Err(error) => panic!("{what}: not a finding: {error}"),
        Ok(()) => panic!("{what}: nothing is found"),
    }
}

#[track_caller]
fn fault(what: &str, result: kiln::Result<()>) -> KernelFault {
    match result {
        Err(Error::Fault(fault)) => fault,
        Err(error) => panic!("{what}: not a fault: {error}"),
        Ok(()) => panic!("{what}: nothing is found"),
    }
}

/// A good kernel runs on this device.
fn is_usable(jit: &Jit) {
    let good = kernel("good", |k| {
        let out = k.slice_mut("out", Type::U32);
        let i = k.global_id().x();
        k.if_(i.lt(out.len()), || out.at(i).set(i * 2 + 1));
    });
    let run = || {
        let mut out = jit.zeros::<u32>(100)?;
        jit.launch(&good, 4, 32, args!(&mut out))?;
        out.to_vec()
    };
    let got = run().expect("the device is usable");
    assert!(got.iter().enumerate().all(|(i, &v)| v == i as u32 * 2 + 1));
}

/// Kernels without a mistake: the suite over all devices, with every check.
#[test]
fn the_suite_is_clean() {
    let device = Device::cpu();
    let mut wrong = Vec::new();
    for (name, case) in suite::cases() {
        let options = JitOptions {
            checks: Checks::all(),
            ..JitOptions::default()
        };
        let jit = Jit::with(device.clone(), kiln::hooks::standard(), options);
        let result = case(&jit).map_err(|e| e.to_string());
        let race = match name {
            // Its compare-and-swap loop starts from a plain read, while others swap already.
            "atomics" => Some("thread 1x0x0 of block 0x0x0 reads it"),
            // It races, to reach nothing that it was not given.
            "a_race_on_an_index_reaches_nothing_else" => {
                Some("a race on element 0 of 1 of `index`")
            }
            _ => None,
        };
        match (&result, race) {
            (Ok(()), None) => {}
            (Err(text), Some(race)) if text.contains(race) => {}
            _ => wrong.push(format!("{name}: {result:?}, not {race:?}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
