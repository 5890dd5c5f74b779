//! What decides the code besides the module and the target.

use crate::llvm::optimize::OptLevel;

/// Options of a compilation: plain data, and part of the cache key.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
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
        CompileOptions {
            opt_level: OptLevel::O3,
            contract: true,
            line_info: false,
        }
    }
}

impl CompileOptions {
    /// Sets how hard LLVM tries.
    #[must_use]
    pub fn opt_level(self, opt_level: OptLevel) -> CompileOptions {
        CompileOptions { opt_level, ..self }
    }

    /// Sets whether `a * b + c` may become one fused operation with one rounding.
    #[must_use]
    pub fn contract(self, contract: bool) -> CompileOptions {
        CompileOptions { contract, ..self }
    }

    /// Sets whether the PTX says which line of Rust each instruction comes from (`.loc`).
    #[must_use]
    pub fn line_info(self, line_info: bool) -> CompileOptions {
        CompileOptions { line_info, ..self }
    }
}
