//! LLVM: the library, compile threads, target machines and passes, whatever code is made.
//!
//! | file | subject |
//! |---|---|
//! | `library` | finding and opening libLLVM, whose functions are forwarded to |
//! | `session` | a compile on a thread of its own, with its diagnostics; `park` stops one that does not end |
//! | `ending` | compiles while the process ends |
//! | `memory` | whether the memory is there that a compile takes |
//! | `machine` | target machines: passes and emission behind error values |
//! | `idle` | target machines that wait for the next compile |
//! | `optimize`, `effort` | pass pipelines; how hard LLVM tries |
//! | `unrolled` | how loops are unrolled that ask for it |
//! | `bindings` | what inkwell does not have |
//! | `ask` | what inkwell gives back as an `Option` |
//! | `inspect` | what instructions are |
//! | `flow` | dominators and loops |
//! | `word_calls` | calls of the host in place of what only another machine has |
//! | `operations` | operations of the IR by LLVM's names |
//! | `error` | what can go wrong |

pub(crate) mod ask;
pub(crate) mod bindings;
pub(crate) mod effort;
mod ending;
pub(crate) mod error;
pub(crate) mod flow;
mod idle;
#[cfg_attr(
    not(feature = "gpu-on-host"),
    allow(dead_code, reason = "code for GPUs on this CPU asks the most")
)]
pub(crate) mod inspect;
pub(crate) mod library;
pub(crate) mod machine;
pub(crate) mod memory;
pub(crate) mod operations;
pub(crate) mod optimize;
pub(crate) mod park;
pub(crate) mod reflection;
pub(crate) mod session;
pub(crate) mod unrolled;
#[cfg(feature = "gpu-on-host")]
pub(crate) mod word_calls;

/// The LLVM release that code is generated with; part of the cache key.
pub(crate) const LLVM_VERSION: u32 = 22;
