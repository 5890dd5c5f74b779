//! Extensions of Kiln's compiler as the author of a program writes them: in a crate that is no part of
//! Kiln's workspace, with what Kiln documents and nothing else.
//!
//! Each file is one extension: the hook or what does its work, then its tests, on the compiled CPU, in the
//! interpreter and in PTX. How many lines the extensions may have is in `lines.rs`.
#![forbid(unsafe_code)]

pub mod approximate;
pub mod cache_hint;
pub mod counters;
pub mod expression;
pub mod fast_math;
pub mod fast_tanh;
pub mod library_error;
pub mod narrow;
pub mod permute;
pub mod read_only;
pub mod small_blocks;
pub mod tensor;
pub mod timer;

#[cfg(test)]
mod lines;
#[cfg(test)]
mod machines;
