//! Compile jobs: all that decides the code, as data.

use std::sync::Arc;

use crate::code::KernelInfo;
pub use crate::codegen::{CompileOptions, OptLevel};
use crate::ir::Module;
use crate::legal::Legal;
use crate::target::Target;

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
}
