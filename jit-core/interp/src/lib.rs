//! The interpreter: the exact per-thread meaning of the IR.
//!
//! It is the oracle that other backends are compared with, and what the CPU device runs until the
//! compiled CPU backend takes its place. It shares no code with code generation, it is
//! deterministic, and it runs threads one after the other: a thread goes on until it ends or comes
//! to a barrier; when all threads of the block have ended or wait, the barrier is passed. A thread
//! that comes to an operation of its warp waits for the lanes it executes it with. Where blocks wait for all of the
//! grid, each runs up to there, in order, before the first goes on.
//!
//! | file | subject |
//! |---|---|
//! | `flatten` | a module to a list of ops over numbered registers, calls inlined |
//! | `fold` | what constants decide of a function, before any thread runs |
//! | `ops` | what an op is, and the scalar functions ops call |
//! | `run` | blocks, threads, the loop that executes ops |
//! | `named` | named barriers, to which warps come as a whole |
//! | `together` | blocks that wait for each other |
//! | `warp` | which lanes execute an operation of a warp together, and its execution |
//! | `memory` | every access to memory, checked against what the launch may touch |
//! | `check` | races, barriers, uninitialized memory: looked for only where a launch asks for it |

mod check;
pub mod checks;
mod flatten;
mod fold;
mod memory;
mod named;
mod ops;
mod run;
mod together;
mod warp;

use kiln_ir::abi::ParamLayout;
use kiln_ir::block_order::BlockOrder;
use kiln_ir::fault::FaultRecord;
use kiln_ir::launch::DesertedGrid;
use kiln_ir::legal::Legal;
use kiln_ir::row_panic::RowPanic;
use kiln_ir::stop::Stop;
use kiln_ir::{debug_as_text, error_text};

use crate::checks::{Checks, Finding};
pub use fold::known_scalars;

/// Threads of a block, at most (CUDA guide, "Thread Hierarchy").
const MAX_BLOCK_THREADS: u64 = 1024;

/// A kernel in the interpreter's form.
#[derive(Debug)]
pub struct InterpretedKernel {
    program: flatten::Program,
    layout: ParamLayout,
}

/// The shape and the arguments of a launch.
#[derive(Debug)]
pub struct InterpretLaunch<'a> {
    /// Blocks of the grid.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Dynamic shared memory of a block, in bytes.
    pub dynamic_shared: u32,
    /// The parameter block, laid out as [`InterpretedKernel::layout`] says.
    pub params: &'a [u8],
    /// What fault records call the kernel.
    pub kernel_tag: u64,
    /// The number of loop iterations a thread may make; `None`: as many as it likes.
    pub step_limit: Option<u64>,
    /// The order in which blocks run, one after the other.
    pub order: BlockOrder,
}

/// Why a launch ended early, or could not start.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InterpretError {
    /// An unchecked access to memory that is not the launch's.
    #[error("{}", error_text!(
        "kernel `{kernel}`, {location}: an access to {bytes} bytes at {address:#x}, which is no \
         memory of this launch (block {block:?}, thread {thread:?}); check pointers and unchecked \
         indices"
    ))]
    IllegalAddress {
        /// The kernel.
        kernel: String,
        /// The line of Rust.
        location: String,
        /// Index of the block.
        block: [u32; 3],
        /// Index of the thread.
        thread: [u32; 3],
        /// The address.
        address: u64,
        /// The size of the access.
        bytes: u32,
    },
    /// An access that is not aligned to its size.
    #[error("{}", error_text!(
        "kernel `{kernel}`, {location}: an access to {bytes} bytes at {address:#x} is not aligned \
         to its size (block {block:?}, thread {thread:?}); check pointers and offsets"
    ))]
    MisalignedAddress {
        /// The kernel.
        kernel: String,
        /// The line of Rust.
        location: String,
        /// Index of the block.
        block: [u32; 3],
        /// Index of the thread.
        thread: [u32; 3],
        /// The address.
        address: u64,
        /// The size of the access.
        bytes: u32,
    },
    /// An unchecked assumption that does not hold.
    #[error("{}", error_text!(
        "kernel `{kernel}`, {location}: what the kernel assumes there does not hold (block {block:?}, thread \
         {thread:?}), and it is built without checks; keep to what it promises, or build it checked"
    ))]
    Assumption {
        /// The kernel.
        kernel: String,
        /// The line of Rust.
        location: String,
        /// Index of the block.
        block: [u32; 3],
        /// Index of the thread.
        thread: [u32; 3],
    },
    /// An operation of a warp whose lanes do not come together, or with a member mask that leaves
    /// out a lane that executes it (CUDA guide, "Warp Shuffle Functions" and the sections around).
    #[error("{}", error_text!(
        "kernel `{kernel}`, {location}: `{operation}` cannot be executed (block {block:?}, thread \
         {thread:?}): {what}"
    ))]
    WarpOperation {
        /// The kernel.
        kernel: String,
        /// The line of Rust.
        location: String,
        /// Index of the block.
        block: [u32; 3],
        /// Index of the thread.
        thread: [u32; 3],
        /// The operation.
        operation: &'static str,
        /// What is wrong, and what to do.
        what: String,
    },
    /// A thread exceeded the step limit.
    #[error("{}", error_text!(
        "kernel `{kernel}`, {location}: a thread made more than {limit} loop iterations; \
         end the loop or raise the limit"
    ))]
    StepLimit {
        /// The kernel.
        kernel: String,
        /// The line of Rust of the loop.
        location: String,
        /// The limit.
        limit: u64,
    },
    /// Something outside of the launch ended it.
    #[error("{}", error_text!("kernel `{kernel}` was ended at {location}, before its time"))]
    Stopped {
        /// The kernel.
        kernel: String,
        /// The line of Rust of a loop that was running.
        location: String,
    },
    /// The function of an intrinsic's row panicked.
    #[error(transparent)]
    RowPanic(#[from] RowPanic),
    /// The host has no memory left for the threads of a block.
    #[error("{}", error_text!(
        "the host has no {bytes} bytes of memory left for the threads of a block; use a smaller \
         block or less private memory"
    ))]
    HostMemory {
        /// What was asked for.
        bytes: usize,
    },
    /// A check found something.
    #[error(transparent)]
    Finding(#[from] Box<Finding>),
    /// Blocks that wait for others that have ended.
    #[error(transparent)]
    DesertedGrid(#[from] DesertedGrid),
    /// A kernel that needs more registers or memory than the interpreter gives.
    #[error("{}", error_text!("kernel `{kernel}` is too large for the interpreter: {what}; split it"))]
    TooLarge {
        /// The kernel.
        kernel: String,
        /// What there is too much of.
        what: String,
    },
    /// A launch that no kernel could run: parameters missing, or a block without end.
    #[error("{}", error_text!("kernel `{kernel}` cannot be launched like this: {what}"))]
    InvalidLaunch {
        /// The kernel.
        kernel: String,
        /// What is wrong.
        what: String,
    },
    /// A module that the verifier would not have passed.
    #[error("{}", error_text!("module `{module}` is not fit for execution: {what}"))]
    Unverified {
        /// The module.
        module: String,
        /// What is wrong.
        what: String,
    },
}

debug_as_text!(InterpretError);

impl InterpretedKernel {
    /// Prepares a kernel.
    ///
    /// # Errors
    /// A size beyond the interpreter's.
    pub fn new(legal: &Legal) -> Result<Self, InterpretError> {
        let program = flatten::flatten(legal)?;
        let layout = legal.layout().clone();
        Ok(Self { program, layout })
    }

    /// Whether blocks wait for all others of the grid: then all are there at the same time.
    pub fn waits_for_grid(&self) -> bool {
        self.program.waits_for_grid
    }

    /// How arguments are passed.
    pub fn layout(&self) -> &ParamLayout {
        &self.layout
    }

    /// Runs a launch to its end. `memory` lists the address ranges it may touch, as (start, bytes).
    /// Gives the record of the first fault, if there was one.
    ///
    /// # Errors
    /// An access outside of `memory` or misaligned, an operation of a warp whose lanes do not come
    /// together, or a thread beyond the step limit; the launch then stops where it was.
    ///
    /// # Safety
    /// Until this returns, every range of `memory` is valid for reads and writes through its exposed
    /// address, initialized, and accessed by nobody else.
    pub unsafe fn run(
        &self,
        launch: &InterpretLaunch<'_>,
        memory: &[(u64, u64)],
    ) -> Result<Option<FaultRecord>, InterpretError> {
        // SAFETY: passed on to the caller.
        unsafe { self.run_checked(launch, memory, &Checks::none()) }
    }

    /// [`InterpretedKernel::run`] with checks. The watchdog's number takes the place of the step
    /// limit.
    ///
    /// # Errors
    /// As [`InterpretedKernel::run`], and the first thing that a check finds.
    ///
    /// # Safety
    /// As [`InterpretedKernel::run`].
    pub unsafe fn run_checked(
        &self,
        launch: &InterpretLaunch<'_>,
        memory: &[(u64, u64)],
        checks: &Checks,
    ) -> Result<Option<FaultRecord>, InterpretError> {
        // SAFETY: passed on to the caller.
        unsafe { self.run_until(launch, memory, checks, &Stop::default()) }
    }

    /// [`InterpretedKernel::run_checked`] until `stop` is set.
    ///
    /// # Errors
    /// As [`InterpretedKernel::run_checked`], and [`InterpretError::Stopped`].
    ///
    /// # Safety
    /// As [`InterpretedKernel::run`].
    pub unsafe fn run_until(
        &self,
        launch: &InterpretLaunch<'_>,
        memory: &[(u64, u64)],
        checks: &Checks,
        stop: &Stop,
    ) -> Result<Option<FaultRecord>, InterpretError> {
        self.check_launch(launch)?;
        // SAFETY: passed on to the caller.
        unsafe { run::run(&self.program, launch, memory, checks, stop) }
    }

    fn check_launch(&self, launch: &InterpretLaunch<'_>) -> Result<(), InterpretError> {
        let invalid = |what| {
            Err(InterpretError::InvalidLaunch {
                kernel: self.program.name.clone(),
                what,
            })
        };
        let (needed, given) = (self.layout.size as usize, launch.params.len());
        if given < needed {
            return invalid(format!(
                "its parameters take {needed} bytes and {given} are given; lay them out as \
                 `layout` says"
            ));
        }
        let [x, y, z] = launch.block.map(u64::from);
        let threads = x.checked_mul(y).and_then(|n| n.checked_mul(z));
        if threads.is_none_or(|n| n > MAX_BLOCK_THREADS) {
            return invalid(format!(
                "a block of {x} x {y} x {z} threads; at most {MAX_BLOCK_THREADS} are possible"
            ));
        }
        Ok(())
    }
}
