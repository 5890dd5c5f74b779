//! Code for CPUs of this machine's kind: the code of a block, a warp of it a vector.
//!
//! | file | subject |
//! |---|---|
//! | `isa` | the Isa: ways to run a kernel, passes, emission |
//! | `vector` | a legal module as a module of LLVM |
//! | `gathers` | indices of 32 bits, extended at gathers and scatters |
//! | `split` | long blocks, cut before LLVM schedules them |

mod gathers;
pub(crate) mod isa;
mod split;
mod vector;
