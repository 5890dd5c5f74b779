//! `#[kernel]` functions as values, and against the same kernels written with the builder. What they
//! compute is in the chapters `rust_*` of `tests/suite`.

#[path = "macros/elementwise.rs"]
mod elementwise;
mod kernels;
#[path = "macros/positions.rs"]
mod positions;
#[path = "macros/ptx.rs"]
mod ptx;
#[path = "macros/same_ir.rs"]
mod same_ir;
#[path = "macros/values.rs"]
mod values;
#[path = "macros/wide.rs"]
mod wide;

use kiln::core::job::CompileOptions;
use kiln::core::runtime::CpuOptions;
use kiln::prelude::*;

/// The interpreter, and this CPU's compiled code.
fn devices() -> [Device; 2] {
    let interpreter = CpuOptions {
        interpret: true,
        ..CpuOptions::default()
    };
    [Device::cpu_with(interpreter), Device::cpu()]
}

/// A `Jit` that rounds each operation by itself, as the host does.
fn exact(device: Device) -> Jit {
    let compile = CompileOptions {
        contract: false,
        ..CompileOptions::default()
    };
    let options = JitOptions {
        compile,
        ..JitOptions::default()
    };
    Jit::with(device, kiln::hooks::standard(), options)
}
