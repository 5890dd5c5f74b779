//! Operations of a warp: 32 threads that exchange values without memory (CUDA guide, "Warp Vote
//! Functions", "Warp Match Functions", "Warp Reduce Functions", "Warp Shuffle Functions"; PTX ISA,
//! "shfl.sync", "vote.sync", "match.sync", "redux.sync", "activemask", "bar.warp.sync").
//!
//! A warp is a run of 32 threads of a block in linear order, x fastest; the last one may be shorter.
//! A thread's lane is its number in its warp. Except for [`Warp::active_mask`] every operation that
//! involves other lanes takes a member mask, a `u32` with a bit for each lane:
//!
//! - A lane that executes the operation must be in its own mask.
//! - All lanes of the mask that have not ended come to the same operation, at the same place of the
//!   kernel, with the same mask; each waits for the others. Lanes that have ended, or that a short
//!   last warp does not have, do not count: [`FULL_MASK`] always stands for all that are left.
//! - Lanes that branch apart use masks of their own: in `if c { .. }` it is the mask
//!   `ballot(FULL_MASK, c)`, computed before the branch.
//!
//! The interpreter ends a launch that breaks these rules with an error; a GPU may give any result
//! or wait for ever. Only [`warp_sync`](operations::warp_sync()) orders memory.
//!
//! The sum of each warp, in five steps that bring all lanes the same result. An operation is a function for
//! `#[kernel]` functions and the host, and a method of the builder ([`Warp`]); one table writes both.
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn warp_sums(x: &[f32], sums: &mut [f32]) {
//!     let i = global_id().x;
//!     // All lanes come to the shuffles, those behind the end with a zero.
//!     let mut sum = if i < x.len() { x[i] } else { 0.0 };
//!     for lanes in [16, 8, 4, 2, 1] {
//!         sum += shuffle_xor(FULL_MASK, sum, lanes, 32);
//!     }
//!     if lane_id() == 0 {
//!         sums[i / 32] = sum;
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let x = jit.upload(&[1.0; 50])?;
//! let mut sums = jit.zeros(2)?;
//! warp_sums.launch(&jit, (1, 64), &x, &mut sums)?;
//! assert_eq!(sums.to_vec()?, [32.0, 18.0]);
//! # Ok(())
//! # }
//! ```
//!
//! | file | subject |
//! |---|---|
//! | `warp/operations` | the table |
//! | `warp/cells` | how GPUs have them |
//! | `warp/meaning` | what they mean |

mod cells;
mod meaning;
pub mod operations;

pub use operations::Warp;
pub(crate) use operations::rows;

/// The member mask of a whole warp.
pub const FULL_MASK: u32 = u32::MAX;
