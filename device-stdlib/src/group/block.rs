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
//!
//! Threads hand each other values through shared memory:
//!
//! ```
//! use kiln::prelude::*;
//!
//! /// Numbers in the order of the block from its end, less the third.
//! #[kernel]
//! fn reverse(x: &mut [i32]) {
//!     let (block, memory) = (this_block(), shared!([i32; 256]));
//!     let i = block.rank() as usize;
//!     let third = block.broadcast(x[i], 2);
//!     x[i] = block.shuffle(x[i], block.size() - 1 - block.rank(), memory) - third;
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let mut x = jit.upload(&[1, 7, 8, 3])?;
//! reverse.launch(&jit, (1, 4), &mut x)?;
//! assert_eq!(x.to_vec()?, [-5, 0, -1, -7]);
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

    /// The value of the thread with a rank, for all threads (CUDA: a `__shared__` variable between two barriers).
    /// `value` is of any type; it goes through shared memory of the group's own.
    ///
    /// All threads that have not ended come here with the same `from_rank`, which is that of one of them. It is a barrier,
    /// too. A rank that is not below the size ends the thread with an error.
    pub fn broadcast<T: DeviceType>(self, value: T, from_rank: u32) -> T {
        let size = self.size;
        assert!(
            from_rank < size,
            "a block's broadcast is of one of its threads"
        );
        let sent = shared!([T; 1]);
        // The threads of another call have read it.
        barrier();
        if self.rank == from_rank {
            sent[0] = value;
        }
        barrier();
        sent[0]
    }

    /// The value of the thread with the rank that this thread asks for, in any warp of the block; its own where there is no
    /// such thread. `value` is of any type.
    ///
    /// `memory` is shared memory for a value of each thread; what was read of it before is safe to be overwritten. All
    /// threads that have not ended come here, and no thread asks for one that has. It is a barrier, too. Too little memory
    /// ends the threads with an error.
    pub fn shuffle<T: DeviceType>(self, value: T, rank: u32, memory: &mut [T]) -> T {
        let size = self.size;
        assert!(
            memory.len() >= size as usize,
            "a block's shuffle takes memory for a value of each thread"
        );
        barrier();
        memory[self.rank as usize] = value;
        barrier();
        if rank < size {
            memory[rank as usize]
        } else {
            value
        }
    }
}
