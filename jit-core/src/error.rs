//! Every error a user of Kiln can meet, by whose subject it is.
//!
//! Each variant is a typed value; its text says what happened, where (kernel, argument, line of
//! Rust) and what to do about it.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::build::BuildErrors;
use crate::checks::Finding;
use crate::codegen::{BackendError, CompileThreadError, IllegalOperations};
use crate::definition::{RecursionError, SignatureChanged};
use crate::hook::HookError;
use crate::interp::InterpretError;
use crate::ir::VerifyErrors;
use crate::launch::{KernelFault, LaunchError, LaunchStopped};
use crate::row_panic::RowPanic;
use crate::runtime::ObjectError;
use crate::runtime::cuda::DriverError;
use crate::specialize::{BindError, SpecializeError};

/// What can go wrong between describing a kernel and reading its results.
///
/// Its `Debug` form is that text, too, because it is what `main` and `unwrap` print.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The description of a kernel or device function is wrong.
    #[error(transparent)]
    Build(#[from] BuildErrors),
    /// A redefinition changes the signature that callers rely on.
    #[error(transparent)]
    SignatureChanged(#[from] SignatureChanged),
    /// A function calls itself, directly or not.
    #[error(transparent)]
    Recursion(#[from] RecursionError),
    /// The arguments of a launch do not fit the kernel.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// A kernel cannot be specialized for its arguments.
    #[error(transparent)]
    Specialize(#[from] SpecializeError),
    /// A module breaks the rules of the IR, or uses what the target does not have.
    #[error(transparent)]
    Verify(#[from] VerifyErrors),
    /// A kernel uses what the target does not have.
    #[error(transparent)]
    Illegal(#[from] IllegalOperations),
    /// A hook failed, panicked or broke a module.
    #[error(transparent)]
    Hook(#[from] HookError),
    /// A compilation did not come to an end: no libLLVM, or what LLVM cannot compile.
    #[error(transparent)]
    CompileThread(#[from] CompileThreadError),
    /// LLVM rejects what it was given.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The CUDA driver cannot be used or reports an error.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// A buffer that does not hold what its type says.
    #[error(transparent)]
    InvalidValue(#[from] crate::value::InvalidValue),
    /// A launch that cannot be.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// A thread of an earlier launch ended because it did something it must not.
    #[error(transparent)]
    Fault(#[from] KernelFault),
    /// A launch was ended before its time.
    #[error(transparent)]
    Stopped(#[from] LaunchStopped),
    /// A device that cannot end launches.
    #[error(
        "{device} cannot end a kernel before its time; set `JitOptions::time_limit`, so that waiting \
         for it ends"
    )]
    NoCancel {
        /// The device.
        device: String,
    },
    /// The function of an intrinsic's row panicked.
    #[error(transparent)]
    RowPanic(#[from] RowPanic),
    /// A number of lanes that no vector has.
    #[error("vectors of {lanes} lanes were asked for; a vector has 1, 8, 16, 32 or 64")]
    Lanes {
        /// What was asked for.
        lanes: u32,
    },
    /// The interpreter met something that ends the launch.
    #[error(transparent)]
    Interpret(InterpretError),
    /// A check found something; see [`crate::checks`].
    #[error(transparent)]
    Finding(#[from] Box<Finding>),
    /// Checks on a device that makes none.
    #[error(
        "kernel `{kernel}`: {device} makes no checks; launch it with these options on \
         `Device::cpu()`, or run the program under NVIDIA's compute-sanitizer"
    )]
    NoChecks {
        /// The kernel.
        kernel: String,
        /// The device.
        device: String,
    },
    /// More values than a buffer has.
    #[error("{values} values do not fit a buffer of {buffer}; allocate a larger one")]
    BufferTooSmall {
        /// Values the buffer has.
        buffer: usize,
        /// Values given.
        values: usize,
    },
    /// The host has no memory left.
    #[error("the host has no {bytes} bytes of memory left; use smaller buffers or drop some")]
    HostMemory {
        /// What was asked for.
        bytes: usize,
    },
    /// The operating system gives no thread to run blocks on.
    #[error("no thread could be started to run kernels on this CPU: {0}; the process has too many")]
    Workers(String),
    /// Machine code that cannot be loaded.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// An address that is not of this device's memory.
    #[error("{address:#x} is no address of this device's memory; use buffers of this device")]
    ForeignAddress {
        /// The address.
        address: u64,
    },
    /// An event of another device.
    #[error("the two events are of different devices; record both on one")]
    ForeignEvent,
    /// Code for another kind of device.
    #[error(
        "kernel `{kernel}` was compiled for another target than {device} can run; do not set \
         `JitOptions::target` where kernels are launched"
    )]
    WrongTarget {
        /// The kernel.
        kernel: String,
        /// The device.
        device: String,
    },
    /// A stage that the target does not have.
    #[error(
        "kernel `{kernel}` was compiled for {target}, which has no stage `{stage}`; set \
         `JitOptions::target` to look at another target's code"
    )]
    NoStage {
        /// The kernel.
        kernel: String,
        /// The stage.
        stage: &'static str,
        /// The target.
        target: &'static str,
    },
    /// A program outside of Kiln that cannot be used.
    #[error(
        "{tool} ({}) failed: {message}\n  set KILN_PTXAS and KILN_NVDISASM to the paths of \
         NVIDIA's tools, or run `cargo xtask setup`",
        path.display()
    )]
    Tool {
        /// Which.
        tool: &'static str,
        /// Its path.
        path: PathBuf,
        /// What it said.
        message: String,
    },
    /// A module without a kernel.
    #[error("module `{module}` has no kernel that can be launched")]
    NoKernel {
        /// The module.
        module: String,
    },
    /// Code for a GPU did on this CPU what ends a launch.
    #[cfg(feature = "gpu-on-host")]
    #[error(transparent)]
    OnHost(#[from] crate::runtime::OnHostError),
    /// A bug in Kiln.
    #[error("internal error, please report it: {0}")]
    Internal(&'static str),
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<InterpretError> for Error {
    fn from(error: InterpretError) -> Error {
        match error {
            InterpretError::Finding(finding) => Error::Finding(finding),
            InterpretError::RowPanic(panic) => Error::RowPanic(panic),
            InterpretError::HostMemory { bytes } => Error::HostMemory { bytes },
            error => Error::Interpret(error),
        }
    }
}

impl Error {
    pub(crate) fn tool(tool: &'static str, path: &Path, message: String) -> Error {
        Error::Tool {
            tool,
            path: path.to_owned(),
            message,
        }
    }
}

/// The result of anything that can fail in Kiln.
pub type Result<T, E = Error> = std::result::Result<T, E>;
