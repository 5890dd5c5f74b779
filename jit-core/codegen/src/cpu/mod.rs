//! Code for CPUs of this machine's kind: the code of a block, a warp of it a vector.
//!
//! | file | subject |
//! |---|---|
//! | `isa` | the Isa: ways to run a kernel, passes, emission |
//! | `vector` | a legal module as a module of LLVM |
//! | `split` | long blocks, cut before LLVM schedules them |

pub(crate) mod isa;
mod split;
mod vector;
