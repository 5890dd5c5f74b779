//! The settings of a CPU device.

use kiln_ir::block_order::BlockOrder;
use kiln_ir::target::Barriers;

/// Settings of a CPU device: fields to read, and methods of the same names that set them.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CpuOptions {
    /// Threads that run blocks; by default as many as the machine has cores.
    pub threads: Option<u32>,
    /// Lanes of a vector: 1, 8, 16, 32 or 64; by default what suits the machine and the block. Kernels
    /// with warp operations always have 32.
    pub lanes: Option<u32>,
    /// Run everything in the interpreter, which is slow and exact.
    pub interpret: bool,
    /// What happens at barriers; by default what suits the kernel.
    pub barriers: Option<Barriers>,
    /// The order in which the blocks of a launch begin.
    pub block_order: BlockOrder,
}

impl CpuOptions {
    /// Sets how many threads run blocks; `None` is as many as the machine has cores.
    #[must_use]
    pub fn threads(self, threads: impl Into<Option<u32>>) -> CpuOptions {
        CpuOptions {
            threads: threads.into(),
            ..self
        }
    }

    /// Sets the lanes of a vector: 1, 8, 16, 32 or 64; `None` is what suits the machine and the block.
    #[must_use]
    pub fn lanes(self, lanes: impl Into<Option<u32>>) -> CpuOptions {
        CpuOptions {
            lanes: lanes.into(),
            ..self
        }
    }

    /// Sets whether everything runs in the interpreter, which is slow and exact.
    #[must_use]
    pub fn interpret(self, interpret: bool) -> CpuOptions {
        CpuOptions { interpret, ..self }
    }

    /// Sets what happens at barriers; `None` is what suits the kernel.
    #[must_use]
    pub fn barriers(self, barriers: impl Into<Option<Barriers>>) -> CpuOptions {
        CpuOptions {
            barriers: barriers.into(),
            ..self
        }
    }

    /// Sets the order in which the blocks of a launch begin.
    #[must_use]
    pub fn block_order(self, block_order: BlockOrder) -> CpuOptions {
        CpuOptions {
            block_order,
            ..self
        }
    }
}
