//! Host code from a legal module: a warp is an LLVM vector.
//!
//! The kernel becomes one function that runs a range of blocks. A block is a sequence of segments
//! between barriers, a segment a loop over its warps, and a warp runs its threads as the lanes of
//! vectors: what differs from lane to lane is a vector, what does not stays a scalar, and where
//! lanes part a mask says who is there. `simt` finds out what is what; this module writes it down.
//!
//! | file | subject |
//! |---|---|
//! | `lanes` | how many lanes a vector has |
//! | `plan` | all that is known of a kernel before a line is written: analyses, memory of a block |
//! | `entry` | the function and what is there in all of it |
//! | `beside` | blocks that are run side by side |
//! | `block`, `run` | blocks of a grid, branches and loops of a block; warps of a segment |
//! | `coroutine` | warps that wait at barriers no cut of the kernel reaches |
//! | `warp` | one instruction in all lanes; the list of all instructions |
//! | `flow`, `uncounted`, `single` | branches, counted loops and masks; other loops; branches that one lane takes |
//! | `leaf` | what a value is: uniform, affine, or any vector |
//! | `arith`, `cast`, `intrinsic` | operations |
//! | `hooked`, `hook_values` | operations that hooks lower; their values as hooks see them |
//! | `warp_op`, `warp_shuffle`, `warp_group` | operations that lanes execute together |
//! | `address`, `access`, `apart`, `atomic` | bounds checks, loads and stores, those without gathers and scatters, atomics |
//! | `look` | where code looks whether its launch is to end |
//! | `emit` | LLVM instructions on scalars and vectors alike |

mod access;
mod address;
mod apart;
mod arith;
mod atomic;
mod beside;
mod block;
mod cast;
mod clamped;
mod coroutine;
mod emit;
mod entry;
mod flow;
mod hook_values;
mod hooked;
mod intrinsic;
mod lanes;
mod leaf;
mod look;
mod plan;
mod run;
mod single;
mod uncounted;
mod warp;
mod warp_group;
mod warp_op;
mod warp_shuffle;

pub(crate) use beside::blocks_beside;
pub(super) use coroutine::{FRAME_BYTES, take_frame_bytes};
pub(super) use entry::write_kernel;
pub(super) use hooked::HOOKED;
pub(super) use lanes::{choose_lanes, uses_warps};
pub(crate) use plan::{Plan, PlanOptions, Unplannable};
use warp::Warp;
