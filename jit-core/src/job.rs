//! Compile jobs and their results: all that decides the code, and the code.

use std::sync::Arc;

use crate::abi::ParamLayout;
pub use crate::codegen::OptLevel;
use crate::fault::FaultSite;
use crate::ir::{LaunchBounds, Module};
use crate::target::Target;

/// Options of a compilation; part of the cache key.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CompileOptions {
    /// How hard LLVM tries.
    pub opt_level: OptLevel,
    /// Whether `a * b + c` may become one fused operation with one rounding, as nvcc's default
    /// `-fmad=true` has it.
    pub contract: bool,
    /// Whether the PTX says which line of Rust each instruction comes from (`.loc`).
    pub line_info: bool,
}

impl Default for CompileOptions {
    fn default() -> Self {
        Self {
            opt_level: OptLevel::O3,
            contract: true,
            line_info: false,
        }
    }
}

/// One compilation: the specialized module and everything else that decides the code, as data.
#[derive(Clone, Debug)]
pub struct CompileJob {
    /// The kernel with everything it calls, in [`crate::ir::Phase::Specialized`].
    pub module: Module,
    /// What machine the code is for.
    pub target: Target,
    /// Options.
    pub options: CompileOptions,
    /// Identifies the code in fault records: the leading bytes of the cache key's digest.
    pub kernel_tag: u64,
}

/// What a compilation gives: plain data, without any handle of a device or of LLVM.
#[derive(Clone, Debug)]
pub struct CompiledKernel {
    /// The kernel's name as its author wrote it.
    pub name: String,
    /// The symbol to load.
    pub entry: String,
    /// The code.
    pub code: Code,
    /// The names of the kernel's parameters, for errors.
    pub param_names: Vec<String>,
    /// How to pass arguments.
    pub layout: ParamLayout,
    /// Where the code can fault.
    pub fault_sites: Vec<FaultSite>,
    /// Identifies the code in fault records.
    pub kernel_tag: u64,
    /// What the kernel promises about its launches.
    pub launch_bounds: Option<LaunchBounds>,
    /// Static shared memory in bytes, as the IR declares it.
    pub shared_bytes: u64,
}

/// Code for one target.
#[derive(Clone, Debug)]
pub enum Code {
    /// PTX text.
    Ptx(Arc<str>),
    /// The legal module itself, for the interpreter.
    Ir(Arc<Module>),
    /// The legal module, to be compiled for each shape of block it is launched with.
    Cpu(CpuCode),
}

/// What the CPU device compiles: machine code depends on the shape of the blocks.
#[derive(Clone, Debug)]
pub struct CpuCode {
    /// The legal module.
    pub module: Arc<Module>,
    /// Whether a multiplication and a following addition may be fused.
    pub contract: bool,
    /// How hard LLVM tries.
    pub opt_level: OptLevel,
}

impl CpuCode {
    /// The code of a module, compiled with these options.
    pub fn new(module: Arc<Module>, options: &CompileOptions) -> CpuCode {
        CpuCode {
            module,
            contract: options.contract,
            opt_level: options.opt_level,
        }
    }
}
