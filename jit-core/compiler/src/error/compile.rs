//! Kernels that do not become code.

use crate::codegen::{BackendError, CompileThreadError, IllegalOperations, LlvmLibraryError};
use crate::ir::{VerifyErrors, debug_as_text, error_text};
use crate::legal::NotLegal;
use crate::specialize::SpecializeError;

/// Why a kernel does not become code for its arguments and a target.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// A kernel that cannot be specialized for its arguments.
    #[error(transparent)]
    Specialize(#[from] SpecializeError),
    /// A module breaks the rules of the IR.
    #[error(transparent)]
    Verify(#[from] VerifyErrors),
    /// A module that no code is made of.
    #[error(transparent)]
    NotLegal(#[from] NotLegal),
    /// A kernel that uses what the target does not have.
    #[error(transparent)]
    Illegal(#[from] IllegalOperations),
    /// A compilation did not come to an end: no libLLVM, or what LLVM cannot compile.
    #[error(transparent)]
    Thread(#[from] CompileThreadError),
    /// LLVM rejects what it was given.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// What is kept on disk of a kernel is not what is compiled now, as was asked by `KILN_CACHE_VERIFY`.
    #[error("{}", error_text!(
        "kernel `{kernel}`: what is kept of it in {folder} is not what is compiled now; it differs in {what}. Remove \
         the folder, and report it: a change that decides code is in no key"
    ))]
    KeptDiffers {
        /// The kernel.
        kernel: String,
        /// The folder.
        folder: String,
        /// What differs first.
        what: String,
    },
    /// A kernel that was to be kept on disk is not.
    #[error("{}", error_text!(
        "kernel `{kernel}` is not kept on disk: {why}"
    ))]
    NotKept {
        /// The kernel.
        kernel: String,
        /// The reason why the kernel is not kept.
        why: String,
    },
    /// Nothing makes code for the target.
    #[error("{}", error_text!(
        "kernel `{kernel}`: nothing makes code for the target `{target}`; add what does to `JitOptions::isas`"
    ))]
    NoIsa {
        /// The kernel.
        kernel: String,
        /// The target.
        target: String,
    },
}

debug_as_text!(CompileError);

impl From<LlvmLibraryError> for CompileError {
    fn from(error: LlvmLibraryError) -> CompileError {
        CompileThreadError::from(error).into()
    }
}
