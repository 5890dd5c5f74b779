//! The checking mode: every planted mistake is found, with the lines and threads it is at, and no
//! kernel without one is accused: the cases of the suite are run in this mode by `tests/suite.rs`.

mod barriers;
mod bounds;
mod memory;
mod races;
mod texts;

use kiln::Finding;
use kiln::core::launch::KernelFault;
use kiln::core::runtime::CpuOptions;
use kiln::error::{Error, RunError};
use kiln::prelude::*;

/// Threads of a block of most cases.
const THREADS: u32 = 32;

/// A `Jit` whose launches run in the interpreter, with these checks if there are any.
fn jit(checks: Checks) -> Jit {
    // With checks the device's own choice must not matter.
    let device = Device::cpu_with(CpuOptions::default().interpret(checks.is_none()));
    let options = JitOptions::default().checks(checks);
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
        Err(Error::Run(RunError::Finding(finding))) => *finding,
        Err(error) => panic!("{what}: not a finding: {error}"),
        Ok(()) => panic!("{what}: nothing is found"),
    }
}

#[track_caller]
fn fault(what: &str, result: kiln::Result<()>) -> KernelFault {
    match result {
        Err(Error::Run(RunError::Fault(fault))) => fault,
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
