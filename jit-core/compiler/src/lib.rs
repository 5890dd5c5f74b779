//! The compiler of Kiln: from the description of a kernel to code, through hooks.
//!
//! ```text
//! closure over a KernelBuilder                  build
//!   -> ir::Module, Phase::Generic               ir, definition
//!   -> specialize(argument types)               args, specialize
//!   -> CompileJob: all that decides the code    job
//!   -> hooks, verify, lower_abi                 compile, hook, ir::verify, hidden, lower_abi
//!   -> Legal: the proof that code can be made   legal
//!   -> the Isa of the target                    codegen
//!   -> CompiledKernel
//! ```
//!
//! This crate knows no hook, no library function and no array, and launches nothing: `kiln-jit-core` keeps and
//! launches the code that is made here.

mod answered;
pub mod args;
#[cfg(feature = "ndarray")]
pub mod arrays;
mod buffer;
pub mod build;
mod choices;
pub mod compile;
mod contract;
pub mod definition;
pub mod error;
mod event;
pub mod expand;
pub mod front;
mod globals;
mod hidden;
pub mod hook;
pub mod job;
pub mod later;
pub mod lent;
pub mod lower_abi;
mod observe;
mod part;
pub mod pinned;
pub mod prelude;
mod promised;
pub mod region;
pub mod runtime;
pub mod specialize;
#[doc(hidden)]
pub mod under_way;
pub mod value;
pub mod view;

pub use kiln_codegen as codegen;
pub use kiln_codegen::simt;
pub use kiln_interp as interp;
pub use kiln_interp::checks;
pub use kiln_ir as ir;
pub use kiln_ir::{abi, code, environment, fault, launch, legal, rounding, row_panic, target};

/// inkwell, for hooks that work on LLVM modules.
pub use inkwell;
