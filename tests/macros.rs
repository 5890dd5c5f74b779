//! `#[kernel]` and its kind: kernels as ordinary Rust against the same written with the builder,
//! and against plain Rust.

#[path = "../examples/kernels/mod.rs"]
mod kernels;
#[path = "macros/language.rs"]
mod language;
#[path = "macros/same_ir.rs"]
mod same_ir;
#[path = "macros/threads.rs"]
mod threads;
#[path = "macros/types.rs"]
mod types;
#[path = "macros/values.rs"]
mod values;

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
