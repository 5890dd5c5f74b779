//! A device for tests that runs code for GPUs on this CPU: what LLVM's passes for NVPTX have made of a
//! kernel, on any machine.
//!
//! ```text
//! let jit = Jit::with(OnHostOptions::default().device(), standard(), JitOptions::default());
//! ```
//! Kernels are compiled as for a GPU up to the end of LLVM's passes, and to code for this machine from
//! there on (`codegen/gpu/on_host`). Blocks run one after the
//! other, in increasing order, or where they wait for each other each up to there; the threads of a block are coroutines that take turns, in an order
//! that a seed decides, and change at barriers, operations of a warp and atomics. So a program
//! without races gives what it gives on a GPU, unless a pass is wrong, or what it was told.
//!
//! It says nothing about LLVM's code generator for NVPTX, nor about `ptxas`.
//!
//! | file | subject |
//! |---|---|
//! | `device` | the device |
//! | `kernel` | a kernel made runnable; launches |
//! | `block` | the threads of a block, whose turn it is, and where they meet |
//! | `thread` | one thread; what the code calls |
//! | `atomic` | changes of memory that are inline PTX |
//! | `symbols` | what the code may call besides |

mod atomic;
mod block;
mod device;
mod kernel;
mod symbols;
mod thread;

use std::fmt;
use std::sync::Arc;

use kernel::{BlockMemory, Loaded, OnHostLaunch};
use kiln_ir::code::{CompiledKernel, KernelInfo};
use kiln_ir::fault::FaultRecord;
use kiln_ir::gpu_on_host;
use kiln_ir::target::Target;
use kiln_ir::{debug_as_text, error_text};

use super::device::Device;
use crate::error::Result;

/// How code is made and run.
#[derive(Clone, Debug)]
pub struct OnHostOptions {
    /// The architecture to compile for: 90 is sm_90.
    pub sm: u32,
    /// Whose turn it is.
    pub schedule: Schedule,
}

impl OnHostOptions {
    /// What kernels are compiled for.
    pub fn target(&self) -> Target {
        gpu_on_host::target(self.sm)
    }

    /// A device of its own.
    pub fn device(self) -> Device {
        Device::of(Arc::new(device::OnHostDevice::new(self)))
    }
}

impl Default for OnHostOptions {
    fn default() -> Self {
        OnHostOptions {
            sm: 90,
            schedule: Schedule::RoundRobin,
        }
    }
}

/// Whose turn it is among the threads of a block that can go on.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Schedule {
    /// The one that has waited longest.
    RoundRobin,
    /// Any, as this seed has it.
    Shuffled(u64),
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Schedule::RoundRobin => f.write_str("round robin"),
            Schedule::Shuffled(seed) => write!(f, "shuffled by seed {seed}"),
        }
    }
}

/// Code for a GPU did on this CPU what ends a launch.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", error_text!(
    "kernel `{kernel}`, code for sm_{sm} on this CPU: {what}\n  threads took turns: {schedule}"
))]
pub struct OnHostError {
    /// The kernel.
    pub kernel: String,
    /// The architecture it was compiled for.
    pub sm: u32,
    /// What happened, and where.
    pub what: String,
    /// Whose turn it was.
    pub schedule: Schedule,
}

debug_as_text!(OnHostError);

/// A kernel as code for a GPU, without a device.
pub struct OnHostModule {
    kernel: Loaded,
    info: Arc<KernelInfo>,
    memory: BlockMemory,
    options: OnHostOptions,
}

impl OnHostModule {
    /// Loads a kernel that was compiled for [`OnHostOptions::target`].
    ///
    /// # Errors
    /// Code for another target; no memory for blocks.
    pub fn load(kernel: &CompiledKernel, options: OnHostOptions) -> Result<OnHostModule> {
        let memory = BlockMemory::new()?;
        Ok(OnHostModule {
            kernel: Loaded::new(kernel, &memory)?,
            info: kernel.info.clone(),
            memory,
            options,
        })
    }

    /// How arguments are passed.
    pub fn layout(&self) -> &kiln_ir::abi::ParamLayout {
        &self.info.layout
    }

    /// Runs all blocks of a grid in order. Gives the record of the first fault, if there was one.
    ///
    /// # Errors
    /// Threads that wait for each other in vain or do not end; no memory for a block; fewer bytes of
    /// parameters than the layout has.
    ///
    /// # Safety
    /// `params` is laid out as [`OnHostModule::layout`] says, and the kernel accesses no memory
    /// through it but what is valid for that and accessed by nobody else meanwhile.
    pub unsafe fn run(
        &self,
        launch: [[u32; 3]; 2],
        dynamic_shared: u32,
        params: &[u8],
    ) -> Result<Option<FaultRecord>> {
        if params.len() < self.info.layout.size as usize {
            return Err(crate::error::DeviceError::Internal(
                "fewer parameters than the kernel has",
            ));
        }
        let [grid, block] = launch;
        let launch = OnHostLaunch {
            grid,
            block,
            dynamic_shared,
            params,
            schedule: self.options.schedule,
            sm: self.options.sm,
        };
        // SAFETY: the caller's promise.
        unsafe { self.kernel.run(&launch, &self.memory) }
    }
}
