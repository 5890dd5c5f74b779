//! Code generation: the only part of Kiln that talks to LLVM.
//!
//! No inkwell type leaves this module, save the module handle given to LLVM-level hooks. `library`
//! opens libLLVM, `session` runs a compile and collects its diagnostics, `machine` knows the
//! targets.

mod admitted;
mod cpu;
mod effort;
mod error;
mod hooks;
mod inline_ptx;
mod intrinsic;
mod isa;
mod legal;
mod library;
mod line_info;
mod lower;
pub(crate) mod machine;
mod memory;
#[cfg(feature = "gpu-on-host")]
pub(crate) mod on_host;
mod operations;
mod optimize;
mod options;
mod park;
mod placeless;
mod private;
mod provenance;
mod ptx;
mod ptxas;
pub(crate) mod session;
mod split;
mod types;
mod vector;

pub(crate) use park::in_hook;
pub(crate) use session::compile_module;

pub use admitted::{Admitted, Float};
pub use error::{BackendError, CompileThreadError};
pub use hooks::{LoweringHooks, OperationLowering};
pub use isa::{DirectIsa, Generator, Isa, Isas, LlvmIsa, LlvmJob, LlvmKernel, Lowered};
pub use legal::{Illegal, IllegalOperations};
pub use library::{LlvmLibrary, LlvmLibraryError, Place, Searched, find_library, library};
pub use lower::kernel_entry_name;
/// The LLVM release that code is generated with; part of the cache key.
pub const LLVM_VERSION: u32 = 22;

pub use machine::{PTX_ISAS, PTX_VERSIONS, PtxMinimum};
pub use optimize::OptLevel;
pub use options::CodegenOptions;
pub use session::Session;
