//! The threads of a block as a group.
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn halve(x: &mut [u32], out: &mut [u32]) {
//!     let (block, rounds) = (this_block(), shared!(u32));
//!     let i = block.rank() as usize;
//!     if i == 0 {
//!         *rounds = 0;
//!     }
//!     block.sync();
//!     // Until no number is above 1.
//!     while block.any(x[i] > 1) {
//!         x[i] /= 2;
//!         if i == 0 {
//!             *rounds += 1;
//!         }
//!     }
//!     let (ones, are_ones) = (block.count(x[i] == 1), block.all(x[i] == 1));
//!     out[i] = *rounds + 100 * ones + 10_000 * (are_ones || ones == block.size()) as u32;
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let (mut x, mut out) = (jit.upload(&[1, 7, 8, 3])?, jit.zeros::<u32>(4)?);
//! halve.launch(&jit, (1, 4), &mut x, &mut out)?;
//! assert_eq!(out.to_vec()?, [103; 4]);
//! # Ok(())
//! # }
//! ```

use kiln_jit_core::ir::{Constant, TypeForm};
use kiln_jit_core::value::DeviceType;
use kiln_kernel_macro::device_fn;

use crate::barrier::{barrier_and, barrier_count, barrier_or};
use crate::plain::index::{block_dim, thread_idx};
use crate::plain::memory::barrier;

/// The threads of a block, which work together. Their ranks count from 0, x fastest.
///
/// What waits is a [`barrier()`](crate::plain::memory::barrier()): all threads of the block that have not ended come to the
/// same one.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct BlockGroup {
    rank: u32,
    size: u32,
}

#[diagnostic::do_not_recommend]
impl DeviceType for BlockGroup {
    const FORM: &'static TypeForm =
        &TypeForm::structure("BlockGroup", &[("rank", u32::FORM), ("size", u32::FORM)]);
    fn scalars(&self, out: &mut Vec<Constant>) {
        self.rank.scalars(out);
        self.size.scalars(out);
    }
}

/// The block of this thread (CUDA `this_thread_block`).
#[device_fn]
pub fn this_block() -> BlockGroup {
    let (at, of) = (thread_idx(), block_dim());
    BlockGroup {
        rank: ((at.z * of.y + at.y) * of.x + at.x) as u32,
        size: (of.x * of.y * of.z) as u32,
    }
}

#[device_fn]
impl BlockGroup {
    /// How many threads the block has, those that have ended included (CUDA `size`, `num_threads`).
    pub fn size(self) -> u32 {
        self.size
    }

    /// Which of the threads this is (CUDA `thread_rank`).
    pub fn rank(self) -> u32 {
        self.rank
    }

    /// Waits for all threads (CUDA `sync`).
    pub fn sync(self) {
        barrier();
    }

    /// Waits, and tells whether `predicate` is true for a thread.
    pub fn any(self, predicate: bool) -> bool {
        barrier_or(predicate)
    }

    /// Waits, and tells whether `predicate` is true for all threads.
    pub fn all(self, predicate: bool) -> bool {
        barrier_and(predicate)
    }

    /// Waits, and tells for how many threads `predicate` is true.
    pub fn count(self, predicate: bool) -> u32 {
        barrier_count(predicate)
    }
}
