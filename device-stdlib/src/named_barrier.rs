//! Named barriers: some warps of a block wait for each other (PTX ISA, "barrier"; CUDA `__barrier_sync_count`).
//!
//! A block has 15 of them besides [`barrier()`](crate::plain::memory::barrier()), numbered from 1. Who comes to one says how
//! many threads open it, and all who come say the same. [`barrier_sync`](barrier_sync()) waits until that many have come;
//! [`barrier_arrive`](barrier_arrive()) counts as having come, and goes on. What threads wrote before they came, those see
//! that have waited. A barrier that has opened is as it was before, and can be used again.
//!
//! Warps come as a whole: all lanes that have not ended come to the same one together, and count as 32 threads, those included that
//! have ended or that an incomplete warp does not have. So the number of threads is a multiple of 32.
//!
//! Warps that produce and warps that consume, with two barriers, by which each waits for the other:
//!
//! ```
//! use kiln::prelude::*;
//!
//! const FULL: u32 = 1;
//! const EMPTY: u32 = 2;
//!
//! /// The second warp adds up what the first one computes, 32 numbers at a time.
//! #[kernel]
//! fn pipeline(rounds: u32, sums: &mut [u32]) {
//!     let (tile, thread) = (shared!([u32; 32]), thread_idx().x);
//!     if thread < 32 {
//!         for round in 0..rounds {
//!             if round > 0 {
//!                 barrier_sync(EMPTY, 64);
//!             }
//!             tile[thread] = round * 100 + thread as u32;
//!             barrier_arrive(FULL, 64);
//!         }
//!     } else {
//!         for round in 0..rounds {
//!             barrier_sync(FULL, 64);
//!             sums[thread - 32] += tile[63 - thread];
//!             if round + 1 < rounds {
//!                 barrier_arrive(EMPTY, 64);
//!             }
//!         }
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let mut sums = jit.zeros(32)?;
//! pipeline.launch(&jit, (1, 64), 4, &mut sums)?;
//! assert_eq!(sums.to_vec()?[..2], [600 + 4 * 31, 600 + 4 * 30]);
//! # Ok(())
//! # }
//! ```
//!
//! They are methods of the builder, too, those of the trait [`NamedBarriers`]: `k.barrier_sync(1, 64)`.
//!
//! On a CPU such kernels are interpreted. There a barrier that cannot open ends the launch with an error; on a GPU the block
//! waits for ever.

use kiln_jit_core::ir::{Cell, Effects, Family, Meaning};

use crate::table::operations;

operations! {
    /// Barriers of some warps of a block, as methods of the builder. They come with the prelude.
    builder NamedBarriers;

    /// Comes to barrier `number` of the block, 1 to 15, and waits until so many `threads` have, a multiple of 32 (CUDA
    /// `__barrier_sync_count`).
    fn barrier_sync(number: u32, threads: u32) { let _ = (number, threads); }
        = row("barrier.sync", Meaning::NamedBarrier { waits: true })
        .with_effects(Effects::Synchronizes)
        .with_cells(&[Cell::asm(Family::PTX, None, "barrier.sync $0, $1;", "r,r,~{memory}")]);

    /// Comes to barrier `number` of the block, 1 to 15, which opens when so many `threads` have come, a multiple of 32, and
    /// goes on at once (PTX ISA, "barrier.arrive").
    fn barrier_arrive(number: u32, threads: u32) { let _ = (number, threads); }
        = row("barrier.arrive", Meaning::NamedBarrier { waits: false })
        .with_effects(Effects::Synchronizes)
        .with_cells(&[Cell::asm(Family::PTX, None, "barrier.arrive $0, $1;", "r,r,~{memory}")]);
}
