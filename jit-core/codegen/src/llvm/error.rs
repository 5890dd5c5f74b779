//! What can go wrong on the way from a verified module to PTX or an object.
//!
//! [`BackendError`] is a stage that LLVM refused; [`CompileThreadError`] is a compile that did not
//! come to an end of its own. Missing libraries have their error in `library`.

use std::time::Duration;

use kiln_ir::{debug_as_text, error_text};

use super::library::LlvmLibraryError;

/// A stage of the LLVM back end failed.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", error_text!("LLVM back end, {stage}: {message}"))]
pub struct BackendError {
    /// What was being done: `target`, `verify`, `link`, `optimize` or `emit`.
    pub stage: &'static str,
    /// LLVM's words, one line for each diagnostic.
    pub message: String,
}

debug_as_text!(BackendError);

impl BackendError {
    /// An error of `stage` with LLVM's text.
    pub fn new(stage: &'static str, message: impl Into<String>) -> BackendError {
        BackendError {
            stage,
            message: message.into(),
        }
    }
}

/// A compile did not come to an end of its own. Nothing was cached; later compiles are not
/// affected.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompileThreadError {
    /// There is no libLLVM to compile with.
    #[error(transparent)]
    Library(#[from] LlvmLibraryError),
    /// The operating system gave no thread.
    #[error("{}", error_text!(
        "no thread could be started to compile kernel `{kernel}`: {reason}\nhelp: the process is \
         out of threads or of address space (64 MiB are needed)"
    ))]
    Thread {
        /// The kernel.
        kernel: String,
        /// The operating system's words.
        reason: String,
    },
    /// The memory is not there that LLVM would take; without it LLVM would end the process.
    #[error("{}", error_text!(
        "compiling kernel `{kernel}` needs about {} MiB of memory, and the process cannot have that \
         much more\nhelp: raise its limit (`ulimit -v`), or free memory",
        bytes >> 20
    ))]
    Memory {
        /// The kernel.
        kernel: String,
        /// What was tried for.
        bytes: usize,
    },
    /// The code that ran panicked.
    #[error("{}", error_text!(
        "compiling kernel `{kernel}` panicked: {message}\nhelp: this is a bug in a hook or in Kiln"
    ))]
    Panic {
        /// The kernel.
        kernel: String,
        /// The panic's message.
        message: String,
    },
    /// LLVM met what it cannot compile. Its memory for this compile is lost to the process.
    #[error("{}", error_text!(
        "LLVM cannot compile kernel `{kernel}`: {message}\nhelp: an operation reached LLVM that \
         its back end does not support on this target; if no hook made it, this is a bug in Kiln"
    ))]
    Fatal {
        /// The kernel.
        kernel: String,
        /// The error diagnostics before, and LLVM's last words.
        message: String,
    },
    /// The process was ending, and with it libLLVM. Nothing is compiled from there on.
    #[error("{}", error_text!(
        "kernel `{kernel}` is not compiled, as the process is ending\nhelp: wait for the threads that compile before \
         `main` returns or `exit` is called"
    ))]
    Ending {
        /// The kernel.
        kernel: String,
    },
    /// The work was still going on after the time limit. What it holds is lost to the process.
    #[error("{}", error_text!(
        "compiling kernel `{kernel}` was given up after {} s{}\nhelp: make the kernel smaller, or launch \
         it on the CPU with `CpuOptions::interpret`; if it is small and no hook takes this long, LLVM \
         works in a circle, which is a bug in Kiln",
        limit.as_secs_f64(),
        if *stopped { "" } else { "; a thread of the process is still busy with it" }
    ))]
    Endless {
        /// The kernel.
        kernel: String,
        /// The time it had.
        limit: Duration,
        /// Whether the work was stopped; else its thread goes on and takes up a core, which happens where
        /// it is in a hook, or the process uses the signal `SIGURG`.
        stopped: bool,
    },
}

debug_as_text!(CompileThreadError);

impl CompileThreadError {
    /// Whether the compile has left a thread of the process where it was, with all that the thread holds.
    pub fn keeps_thread(&self) -> bool {
        match self {
            CompileThreadError::Fatal { .. } => true,
            // One that goes on is in a hook, or where it cannot be stopped; another time it may end.
            CompileThreadError::Endless { stopped, .. } => *stopped,
            CompileThreadError::Library(_)
            | CompileThreadError::Thread { .. }
            | CompileThreadError::Memory { .. }
            | CompileThreadError::Panic { .. }
            | CompileThreadError::Ending { .. } => false,
        }
    }
}
