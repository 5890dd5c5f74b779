//! Code generation: the only part of Kiln that talks to LLVM.
//!
//! No inkwell type leaves this module, save the module handle given to LLVM-level hooks. `library`
//! opens libLLVM, `session` runs a compile and collects its diagnostics, `machine` knows the
//! targets.

mod effort;
mod error;
mod host;
mod inline_ptx;
mod intrinsic;
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
mod pipeline;
mod placeless;
mod private;
mod provenance;
mod ptx;
mod ptxas;
pub(crate) mod session;
mod split;
mod types;
mod vector;

pub(crate) use host::{HostCode, HostJob, HostOutput, compile_host, host_vector_lanes};
pub(crate) use pipeline::{PtxJob, compile_ptx};

pub use error::{BackendError, CompileThreadError};
pub use legal::{Illegal, IllegalOperations, check_legal};
pub use library::{LlvmLibrary, LlvmLibraryError, Place, Searched, find_library, library};
pub use lower::{FunctionLowering, LoweringHooks, NoHooks, kernel_entry_name};
/// The LLVM release that code is generated with; part of the cache key.
pub const LLVM_VERSION: u32 = 22;

pub use machine::{PTX_ISAS, PTX_VERSIONS, PtxMinimum};
pub use optimize::OptLevel;
pub use options::CodegenOptions;
pub use ptx::{PtxError, emit_ptx};
pub(crate) use vector::ENTRY as HOST_ENTRY;
pub use vector::{Barriers, Bug};
