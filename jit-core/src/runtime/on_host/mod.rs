//! A device for tests that runs code for GPUs on this CPU: what LLVM's passes for NVPTX have made of a
//! kernel, on any machine.
//!
//! ```text
//! let on_host = GpuOnHost::new(OnHostOptions::default());
//! let jit = Jit::with(on_host.device(), on_host.hooks(standard()), JitOptions::default());
//! ```
//! Kernels are compiled for a GPU as ever. A hook, the last one, keeps the optimized module of each;
//! loading a kernel makes code for this machine of it (`codegen/gpu/on_host`). Blocks run one after the
//! other, in increasing order; the threads of a block are coroutines that take turns, in an order
//! that a seed decides, and change at barriers, operations of a warp and atomics. So a program
//! without races gives what it gives on a GPU, unless a pass is wrong, or what it was told.
//!
//! It says nothing about LLVM's code generator for NVPTX, nor about `ptxas`.
//!
//! | file | subject |
//! |---|---|
//! | `recorder` | the hook that keeps optimized modules |
//! | `device` | the device |
//! | `kernel` | a kernel made runnable; launches |
//! | `block` | the threads of a block, whose turn it is, and where they meet |
//! | `thread` | one thread; what the code calls |
//! | `access` | memory accesses that are inline PTX |
//! | `symbols` | what the code may call besides |

mod access;
mod block;
mod device;
mod kernel;
mod recorder;
mod symbols;
mod thread;

use std::fmt;
use std::sync::Arc;

use super::device::Device;
use crate::code::KernelInfo;
use crate::compile::{NoObserver, compile};
use crate::error::Result;
use crate::fault::FaultRecord;
use crate::hook::HookSet;
use crate::ir::{Module, debug_as_text, error_text};
use crate::job::{CompileJob, CompileOptions};
use crate::target::{PtxTarget, Target};
use kernel::{BlockMemory, Loaded, OnHostLaunch};
use recorder::Recorder;

/// How code is made and run.
#[derive(Clone, Debug)]
pub struct OnHostOptions {
    /// The architecture to compile for: 90 is sm_90.
    pub sm: u32,
    /// Whose turn it is.
    pub schedule: Schedule,
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

/// A device that runs code for GPUs, with the hook it needs.
#[derive(Clone)]
pub struct GpuOnHost {
    recorder: Recorder,
    device: Device,
}

impl GpuOnHost {
    /// A device of its own.
    pub fn new(options: OnHostOptions) -> GpuOnHost {
        let recorder = Recorder::default();
        let backend = device::OnHostDevice::new(options, recorder.clone());
        GpuOnHost {
            recorder,
            device: Device::of(Arc::new(backend)),
        }
    }

    /// The device.
    pub fn device(&self) -> Device {
        self.device.clone()
    }

    /// Hooks, and the one that the device needs behind them.
    pub fn hooks(&self, hooks: HookSet) -> HookSet {
        hooks.with(self.recorder.clone())
    }
}

/// A module as code for a GPU, without a device.
pub struct OnHostModule {
    kernel: Loaded,
    info: Arc<KernelInfo>,
    memory: BlockMemory,
    sm: u32,
}

impl OnHostModule {
    /// Compiles a module, specialized or legal, as a launch on a GPU would.
    ///
    /// # Errors
    /// As compiling for a GPU; and code that has something in it which is not known here.
    pub fn compile(
        module: &Module,
        sm: u32,
        options: &CompileOptions,
        hooks: &HookSet,
    ) -> Result<OnHostModule> {
        let recorder = Recorder::default();
        let target = PtxTarget::for_sm(sm);
        let job = CompileJob::new(module.clone(), Target::Ptx(target), options.clone());
        let hooks = hooks.clone().with(recorder.clone());
        let compiled = compile(job, &hooks, &NoObserver)?;
        let memory = BlockMemory::new()?;
        Ok(OnHostModule {
            kernel: Loaded::new(&compiled, target, &recorder, &memory)?,
            info: compiled.info,
            memory,
            sm,
        })
    }

    /// How arguments are passed.
    pub fn layout(&self) -> &crate::abi::ParamLayout {
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
        schedule: Schedule,
    ) -> Result<Option<FaultRecord>> {
        if params.len() < self.info.layout.size as usize {
            return Err(crate::error::Error::Internal(
                "fewer parameters than the kernel has",
            ));
        }
        let params: Vec<_> = params
            .iter()
            .map(|&byte| std::mem::MaybeUninit::new(byte))
            .collect();
        let [grid, block] = launch;
        let launch = OnHostLaunch {
            grid,
            block,
            dynamic_shared,
            params: &params,
            schedule,
            sm: self.sm,
        };
        // SAFETY: the caller's promise.
        unsafe { self.kernel.run(&launch, &self.memory) }
    }
}
