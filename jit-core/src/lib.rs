//! The core of Kiln: the `Jit`, which compiles kernels, keeps their code, and launches it.
//!
//! ```text
//! a kernel and its arguments                    build, args
//!   -> look-up                                  cache
//!   -> specialized, through hooks to code       compile, hook, and what kiln-compiler has besides
//!   -> LoadedKernel -> launch                   jit, runtime
//! ```
//!
//! [`Jit::new`](jit::Jit::new) has the hooks that come with Kiln.

pub mod ahead;
pub mod cache;
pub mod inspect;
pub mod jit;

pub use kiln_compiler::*;
