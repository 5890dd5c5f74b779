//! The threads of a grid as a group, of launches that are cooperative.
//!
//! ```
//! use kiln::prelude::*;
//!
//! /// Steps of a wave, each of which reads what all threads have written in the one before.
//! #[kernel]
//! fn spread(x: &mut [f32], y: &mut [f32], steps: u32) {
//!     let (grid, n) = (this_grid(), x.len());
//!     let i = grid.rank() as usize;
//!     for _ in 0..steps {
//!         y[i] = (x[(i + n - 1) % n] + x[(i + 1) % n]) * 0.5;
//!         grid.sync();
//!         x[i] = y[i];
//!         grid.sync();
//!     }
//!     if grid.rank() == 0 {
//!         y[0] = grid.size() as f32 + 0.5 * grid.num_blocks() as f32 + grid.block_rank() as f32;
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let (mut x, mut y) = (jit.upload(&[0.0, 0.0, 0.0, 8.0, 0.0, 0.0, 0.0, 0.0])?, jit.zeros(8)?);
//! let config = LaunchConfig::new(4, 2).cooperative();
//! spread.launch(&jit, config, &mut x, &mut y, 2)?;
//! assert_eq!(x.to_vec()?, [0.0, 2.0, 0.0, 4.0, 0.0, 2.0, 0.0, 0.0]);
//! assert_eq!(y.to_vec()?[0], 10.0);
//! # Ok(())
//! # }
//! ```
//!
//! Threads of the grid vote, and one of them tells all others:
//!
//! ```
//! use kiln::prelude::*;
//!
//! /// Halves numbers until none is above 1. What `rounds` gets is of the last thread.
//! #[kernel]
//! fn halve(x: &mut [u32], ones: &mut [u64], rounds: &mut [u32], memory: &mut [u32]) {
//!     let grid = this_grid();
//!     let (i, mut count) = (grid.rank() as usize, 0);
//!     while grid.any(x[i] > 1) {
//!         x[i] /= 2;
//!         count += 1;
//!     }
//!     ones[i] = grid.count(x[i] == 1) + 10 * grid.all(x[i] < 2) as u64;
//!     rounds[i] = grid.broadcast(count, grid.size() - 1, memory);
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let (mut x, mut ones) = (jit.upload(&[1, 7, 0, 3])?, jit.zeros(4)?);
//! let (mut rounds, mut memory) = (jit.zeros(4)?, jit.zeros(1)?);
//! let config = LaunchConfig::new(2, 2).cooperative();
//! halve.launch(&jit, config, &mut x, &mut ones, &mut rounds, &mut memory)?;
//! assert_eq!(x.to_vec()?, [0, 1, 0, 0]);
//! assert_eq!(ones.to_vec()?, [11; 4]);
//! assert_eq!(rounds.to_vec()?, [2; 4]);
//! # Ok(())
//! # }
//! ```

use kiln_jit_core::ir::{Cell, Constant, Effects, Family, IntrinsicDef, Meaning, Scope, TypeForm};
use kiln_jit_core::value::DeviceType;
use kiln_kernel_macro::device_fn;

use crate::barrier::{barrier_count, barrier_or};
use crate::plain::atomic::{atomic_add, atomic_load, atomic_min, atomic_store};
use crate::plain::index::{
    block_linear_id, global_linear_id, global_linear_size, grid_dim, thread_linear_id,
};
use crate::plain::memory::{barrier, thread_fence_with};
use crate::plain::ordering::Ordering;

crate::intrinsic! {
    /// Waits until one thread of each block has called it, of a launch whose blocks are there at the same time.
    /// `arrivals` counts them where the machine has nothing for that: the sign of the sum of all `add` is turned.
    fn meet(arrivals: &mut u32, add: u32) {
        let _ = (arrivals, add);
    } = row("grid.sync", Meaning::Grid)
        .with_effects(Effects::Memory)
        .with_cells(&[Cell::asm(
            Family::PTX,
            None,
            "{ .reg .pred waits; .reg .b32 before, now; atom.acq_rel.gpu.add.u32 before, [$0], $1; \
             look: ld.acquire.gpu.u32 now, [$0]; xor.b32 now, now, before; setp.ge.s32 waits, now, 0; \
             @waits bra look; }",
            "l,r,~{memory}",
        )]);
}

/// The rows of this chapter.
pub(crate) fn rows() -> impl Iterator<Item = &'static IntrinsicDef> {
    [meet::row()].into_iter()
}

crate::global! {
    /// The blocks that have come to a wait for the grid. Launches with one, which share it, run one after the other.
    fn arrivals() -> [u32; 1];
    /// The votes of all calls so far. What one comes to is the difference to before it, so that it begins anywhere.
    fn votes() -> [u32; 1];
}

/// The threads of a grid, of a launch that is cooperative
/// ([`LaunchConfig::cooperative`](kiln_jit_core::launch::LaunchConfig::cooperative)). Their ranks count from 0: those of a
/// block one after another, one block after another.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct GridGroup {
    rank: u64,
}

#[diagnostic::do_not_recommend]
impl DeviceType for GridGroup {
    const FORM: &'static TypeForm = &TypeForm::structure("GridGroup", &[("rank", u64::FORM)]);
    fn scalars(&self, out: &mut Vec<Constant>) {
        self.rank.scalars(out);
    }
}

/// The grid of this thread (CUDA `cooperative_groups::this_grid`).
#[device_fn]
pub fn this_grid() -> GridGroup {
    GridGroup {
        rank: global_linear_id(),
    }
}

#[device_fn]
impl GridGroup {
    /// How many threads the grid has, those that have ended included (CUDA `size`, `num_threads`).
    pub fn size(self) -> u64 {
        global_linear_size()
    }

    /// Which of the threads this is (CUDA `thread_rank`).
    pub fn rank(self) -> u64 {
        self.rank
    }

    /// How many blocks the grid has (CUDA `num_blocks`).
    pub fn num_blocks(self) -> u64 {
        let blocks = grid_dim();
        blocks.x as u64 * blocks.y as u64 * blocks.z as u64
    }

    /// Which of the blocks that of this thread is, x fastest (CUDA `block_rank`).
    pub fn block_rank(self) -> u64 {
        block_linear_id()
    }

    /// Waits for all threads of the grid: what each of them wrote before, all see after it (CUDA `sync`; PTX ISA, "Memory
    /// Consistency Model").
    ///
    /// Every block comes to it as often as the others, and in it all threads that have not ended. The launch is
    /// cooperative, or an error; so is one of which some blocks end while others wait, but on a GPU, which waits for ever.
    pub fn sync(self) {
        if leads() {
            let blocks = self.num_blocks() as u32;
            thread_fence_with(Ordering::AcqRel, Scope::Device);
            meet(
                &mut arrivals()[0],
                if self.block_rank() == 0 {
                    0x8000_0000 - (blocks - 1)
                } else {
                    1
                },
            );
            thread_fence_with(Ordering::AcqRel, Scope::Device);
        }
        barrier();
    }

    /// Waits for all threads of the grid, twice, and tells for how many of them `predicate` is true. It is a
    /// [`sync()`](GridGroup::sync), too, and all that is said there holds of it.
    pub fn count(self, predicate: bool) -> u64 {
        let of_block = barrier_count(predicate);
        // What is counted now is added after all have read what was there before.
        let before = atomic_load(&votes()[0], Ordering::Relaxed, Scope::Device);
        self.sync();
        if of_block > 0 && leads() {
            atomic_add(&mut votes()[0], of_block);
        }
        self.sync();
        let now = atomic_load(&votes()[0], Ordering::Relaxed, Scope::Device);
        now.wrapping_sub(before) as u64
    }

    /// Waits as [`count()`](GridGroup::count) does, and tells whether `predicate` is true for a thread of the grid.
    pub fn any(self, predicate: bool) -> bool {
        self.count(predicate) > 0
    }

    /// Waits as [`count()`](GridGroup::count) does, and tells whether `predicate` is true for all threads of the grid that
    /// have not ended.
    pub fn all(self, predicate: bool) -> bool {
        self.count(!predicate) == 0
    }

    /// The value of the thread with a rank, for all threads of the grid. `value` is of any type; it goes through the first
    /// element of `memory`, which is global memory that all threads of the grid bring alike.
    ///
    /// All threads that have not ended come here with the same `from_rank`, which is that of one of them; they wait for each
    /// other twice, as in [`sync()`](GridGroup::sync). What was read of `memory` before is safe to be overwritten. A rank
    /// that is not below the size, or no memory, ends the threads with an error.
    pub fn broadcast<T: DeviceType>(self, value: T, from_rank: u64, memory: &mut [T]) -> T {
        let size = self.size();
        assert!(
            from_rank < size,
            "a grid's broadcast is of one of its threads"
        );
        assert!(
            !memory.is_empty(),
            "a grid's broadcast takes memory for one value"
        );
        self.sync();
        if self.rank == from_rank {
            memory[0] = value;
        }
        self.sync();
        memory[0]
    }
}

/// Whether this is the first thread of the block, or if that has ended the first of those that are left. All that have
/// not ended come to it.
#[device_fn]
fn leads() -> bool {
    if barrier_or(thread_linear_id() == 0) {
        thread_linear_id() == 0
    } else {
        is_first_left()
    }
}

/// Whether this is the first thread of the block that has not ended. All that have not come to it.
#[device_fn]
fn is_first_left() -> bool {
    let (first, rank) = (shared!(u32), thread_linear_id() as u32);
    atomic_store(&mut *first, u32::MAX, Ordering::Relaxed, Scope::Block);
    barrier();
    atomic_min(&mut *first, rank);
    barrier();
    *first == rank
}
