//! What decides the code besides the module and the target.
//!
//! All of it is plain data and part of the cache key.

use crate::llvm::optimize::OptLevel;

/// Options of a compile to PTX.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CodegenOptions {
    /// Identifies the kernel in fault records and in the name of its PTX entry.
    pub kernel_tag: u64,
    /// Whether a floating-point multiplication and a following addition may be fused, as nvcc does
    /// by default (`-fmad=true`).
    pub contract: bool,
    /// How much LLVM optimizes.
    pub opt_level: OptLevel,
    /// Whether the PTX says which source line each instruction comes from (`.loc`).
    pub line_info: bool,
}

impl Default for CodegenOptions {
    fn default() -> Self {
        CodegenOptions {
            kernel_tag: 0,
            contract: true,
            opt_level: OptLevel::O3,
            line_info: false,
        }
    }
}
