//! The core of Kiln: kernel IR, builder, specialization, hooks, code generation, caches, runtime.
//!
//! The way of the data, and the module that does each step:
//!
//! ```text
//! closure over a KernelBuilder                  build
//!   -> ir::Module, Phase::Generic               ir, definition
//!   -> specialize(argument types)               args, specialize
//!   -> CompileJob: all that decides the code    job
//!   -> hooks, verify, lower_abi                 compile, hook, ir::verify, lower_abi
//!   -> Legal: the proof that code can be made   legal
//!   -> the Isa of the target                    codegen
//!   -> CompiledKernel <-> KernelCache           cache
//!   -> LoadedKernel -> launch                   jit, runtime
//! ```
//!
//! This crate knows no hook, no library function and no array.

pub mod abi;
pub mod args;
mod block_order;
pub mod build;
pub mod cache;
pub mod checks;
pub mod code;
pub mod codegen;
pub mod compile;
mod contract;
pub mod definition;
pub mod environment;
pub mod error;
pub mod expand;
pub mod fault;
pub mod front;
pub mod hook;
mod host_abi;
pub mod inspect;
pub mod interp;
pub mod ir;
pub mod jit;
pub mod job;
pub mod launch;
pub mod legal;
pub mod lower_abi;
pub mod planted;
pub mod rounding;
pub mod row_panic;
pub mod runtime;
pub mod simt;
pub mod specialize;
mod stop;
pub mod target;
pub mod value;

/// inkwell, for hooks that work on LLVM modules.
pub use inkwell;
