//! `#[kernel]` functions as values, and against the same kernels written with the builder. What they
//! compute is in the chapters `rust_*` of `tests/suite`.

mod allocations;
mod assertions;
mod comparisons;
mod elementwise;
mod positions;
mod ptx;
mod random;
mod same_ir;
mod strides;
mod traits;
mod values;
mod views;
mod wide;

use kiln::core::job::CompileOptions;
use kiln::core::runtime::CpuOptions;
use kiln::prelude::*;

/// The interpreter, and this CPU's compiled code.
fn devices() -> [Device; 2] {
    let interpreter = CpuOptions::default().interpret(true);
    [Device::cpu_with(interpreter), Device::cpu()]
}

/// A `Jit` that rounds each operation by itself, as the host does.
fn exact(device: Device) -> Jit {
    let compile = CompileOptions::default().contract(false);
    let options = JitOptions::default().compile(compile);
    Jit::with(device, kiln::hooks::standard(), options)
}
