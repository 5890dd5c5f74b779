//! Code generation: the only part of Kiln that talks to LLVM.
//!
//! | folder | subject |
//! |---|---|
//! | `llvm` | LLVM itself, whatever it makes: opening the library, a compile and its diagnostics, target machines, passes |
//! | `gpu` | code of one thread: lowering, legality, PTX, what `ptxas` makes wrong of it |
//! | `cpu` | code of a block: a warp is a vector |
//!
//! `isa` is what the pipeline sees of them, and `targets` lists them. No inkwell type leaves this module, save what LLVM-level hooks
//! and users' own [`LlvmIsa`]s are given.

mod admitted;
mod cpu;
mod gpu;
mod hooks;
mod illegal;
mod isa;
mod llvm;
mod options;
mod private;
mod provenance;
pub mod simt;
mod targets;

pub use llvm::park::in_hook;
pub use llvm::session::compile_module;

pub use admitted::{Admitted, Float};
pub use gpu::amdgpu::amdgpu_target;
pub use gpu::kernel_entry_name;
pub use hooks::{
    HookContext, KernelIdentity, LoweredOperation, LoweringHooks, OperationError, OperationLowering,
};
pub use illegal::{Illegal, IllegalOperations};
pub use isa::{DirectIsa, Generator, Isa, LlvmIsa, LlvmJob, LlvmKernel, Lowered};
pub use llvm::error::{BackendError, CompileThreadError};
pub use llvm::library::{
    LlvmLibrary, LlvmLibraryError, SearchPlace, Searched, find_library, library,
};
pub use llvm::optimize::OptLevel;
pub use llvm::session::Session;
pub use options::CompileOptions;
pub use targets::Isas;
