//! Compile jobs: all that decides the code, as data.

use std::sync::Arc;

use crate::code::KernelInfo;
use crate::codegen::CodegenOptions;
pub use crate::codegen::OptLevel;
use crate::ir::Module;
use crate::legal::Legal;
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

impl CompileJob {
    /// A job of its own, under no key.
    pub fn new(module: Module, target: Target, options: CompileOptions) -> CompileJob {
        CompileJob {
            module,
            target,
            options,
            kernel_tag: 0,
        }
    }
}

/// A job whose module is legal: what the code for each shape of block is made of.
#[derive(Clone, Debug)]
pub struct LegalJob {
    /// The module.
    pub legal: Arc<Legal>,
    /// What machine the code is for.
    pub target: Target,
    /// Options.
    pub options: CompileOptions,
    /// What launches need to know.
    pub info: Arc<KernelInfo>,
}

impl LegalJob {
    /// The same for blocks of a shape.
    pub(crate) fn for_block(&self, block: [u32; 3]) -> LegalJob {
        LegalJob {
            target: self.target.for_block(block),
            ..self.clone()
        }
    }

    /// What decides the code besides the module and the target.
    pub(crate) fn codegen_options(&self) -> CodegenOptions {
        CodegenOptions {
            kernel_tag: self.info.kernel_tag,
            contract: self.options.contract,
            opt_level: self.options.opt_level,
            line_info: self.options.line_info,
        }
    }
}
