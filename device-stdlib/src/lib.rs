//! What a Kiln kernel can call, in chapters like the CUDA programming guide's.
//!
//! | chapter | what is in it |
//! |---|---|
//! | [`index`] | thread, block and grid indices |
//! | [`math`] | square root, fused multiply-add, rounding, integer powers |
//! | [`warp`] | lanes, shuffles, votes, matches and reductions of a warp |
//!
//! An intrinsic is a row of its chapter's table ([`kiln_jit_core::ir::IntrinsicDef`]) and a method
//! of the chapter's extension trait; [`registry`] lists all rows, for parsers and for tests.
//! Barriers, fences, atomics and shared memory are part of the IR and of the builder itself.
#![forbid(unsafe_code)]

pub mod index;
pub mod math;
pub mod warp;

use kiln_jit_core::ir::IntrinsicDef;

/// All rows of all chapters.
pub fn registry() -> impl Iterator<Item = &'static IntrinsicDef> {
    index::ROWS.iter().chain(math::ROWS).chain(warp::ROWS)
}

/// The row with this name.
pub fn find(name: &str) -> Option<&'static IntrinsicDef> {
    registry().find(|def| def.name == name)
}
