//! Groups of threads, and what they compute together (CUDA guide, "Cooperative Groups"; CUB, "Warp-Wide Collectives",
//! "Block-Wide Collectives").
//!
//! | group | who is in it |
//! |---|---|
//! | [`this_grid()`] | the threads of the grid, of a cooperative launch |
//! | [`this_block()`] | the threads of the block |
//! | [`this_warp()`] | the lanes of the warp |
//! | [`tile(n)`](tile()) | `n` lanes next to each other |
//! | [`coalesced()`] | the lanes that are here together |
//! | [`lanes_of(mask)`](lanes_of()) | the lanes of a mask |
//! | [`labeled(group, label)`](labeled()) | the members of a group with the same label |
//!
//! A group has a [`rank`](LaneGroup::rank) for each thread and a [`size`](LaneGroup::size); it waits by
//! [`sync`](LaneGroup::sync) and votes by [`any`](LaneGroup::any), [`all`](LaneGroup::all) and
//! [`count`](LaneGroup::count). It shuffles by rank and broadcasts; a block does so through shared memory, a grid broadcasts
//! through global memory. Lanes that have ended before a group is made are no
//! members: a block of any size works, and so does one of which threads have returned.
//!
//! | together | of lanes | of lanes by a mask | of a block | of a grid |
//! |---|---|---|---|---|
//! | all values combined | [`group_reduce()`] | [`warp_reduce()`] | [`block_reduce()`] | [`grid_reduce()`] |
//! | the same, for the first thread | | | [`block_reduce_to_first()`] | |
//! | those up to this thread | [`group_inclusive_scan()`] | [`warp_inclusive_scan()`] | [`block_inclusive_scan()`] | [`grid_inclusive_scan()`] |
//! | those before this thread | [`group_exclusive_scan()`] | [`warp_exclusive_scan()`] | [`block_exclusive_scan()`] | [`grid_exclusive_scan()`] |
//!
//! [`block_inclusive_scan_in()`] and [`block_exclusive_scan_in()`] do with less work what those of a block do, in memory for a
//! value of each thread that the kernel has. [`block_to_striped()`] and [`block_to_blocked()`] change which elements of a block a thread has,
//! [`block_radix_rank()`], [`block_radix_sort()`], [`block_merge_sort()`] and [`block_merge()`] put them in order,
//! [`block_histogram()`] counts them, and [`block_look_back()`] is what the blocks before come to.
//!
//! Reductions and running sums take values of any type, structs and tuples among them, and any associative operator, as a closure. The order of
//! ranks is kept, so it need not be commutative; floats are added up in the same order on each device.
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[derive(KernelType, Copy, Clone, Debug, PartialEq)]
//! #[repr(C)]
//! struct Best {
//!     value: f32,
//!     at: u32,
//! }
//!
//! #[kernel]
//! fn largest(x: &[f32], out: &mut [Best]) {
//!     let mine = Best { value: x[global_id().x], at: global_id().x as u32 };
//!     let best = block_reduce(mine, |a, b| if b.value > a.value { b } else { a });
//!     if this_block().rank() == 0 {
//!         out[block_idx().x] = best;
//!     }
//! }
//!
//! /// Keeps the positive numbers of each tile of 8, in order, at its start.
//! #[kernel]
//! fn pack(x: &[i32], out: &mut [i32], counts: &mut [u32]) {
//!     let (i, tile) = (global_id().x, tile(8));
//!     let keep = x[i] > 0;
//!     let at = tile.rank_where(keep);
//!     if keep {
//!         out[i - tile.rank() as usize + at as usize] = x[i];
//!     }
//!     let count = group_reduce(tile, keep as u32, |a, b| a + b);
//!     if tile.is_first() {
//!         counts[i / 8] = count;
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let x = jit.upload(&(0..100).map(|i| (i * 37 % 100) as f32).collect::<Vec<_>>())?;
//! let mut out = jit.upload(&[Best { value: 0.0, at: 0 }])?;
//! largest.launch(&jit, (1, 100), &x, &mut out)?;
//! assert_eq!(out.to_vec()?, [Best { value: 99.0, at: 27 }]);
//!
//! let x = jit.upload(&[3, -1, 4, -1, 5, 9, -2, 6, -5, 3, 5])?;
//! let (mut out, mut counts) = (jit.zeros::<i32>(11)?, jit.zeros::<u32>(2)?);
//! pack.launch(&jit, (1, 11), &x, &mut out, &mut counts)?;
//! assert_eq!(out.to_vec()?, [3, 4, 5, 9, 6, 0, 0, 0, 3, 5, 0]);
//! assert_eq!(counts.to_vec()?, [5, 2]);
//! # Ok(())
//! # }
//! ```
//!
//! | file | subject |
//! |---|---|
//! | `group/lanes` | groups of lanes |
//! | `group/grid` | the grid |
//! | `group/block` | the block |
//! | `group/collectives` | what they compute together |
//! | `group/grid_collectives` | what a grid computes together, and in what memory |
//! | `group/raking` | running sums of a block in memory of the kernel's |
//! | `group/exchange` | the elements of a block in another arrangement |
//! | `group/radix` | its elements in the order of digits |
//! | `group/merge` | its elements in order by comparison |
//! | `group/histogram` | how many of its elements are of each bin |
//! | `group/look_back` | what the blocks before come to |
//! | `group/built` | all of these as methods of the builder |

mod block;
mod built;
mod collectives;
mod exchange;
mod grid;
mod grid_collectives;
mod histogram;
mod lanes;
mod look_back;
mod merge;
mod radix;
mod raking;

pub(crate) use grid::rows as grid_rows;

pub use block::{BlockGroup, this_block};
pub use built::{BlockThreads, GridThreads, Groups, Lanes};
pub use collectives::{
    block_exclusive_scan, block_inclusive_scan, block_reduce, block_reduce_to_first,
    group_exclusive_scan, group_inclusive_scan, group_reduce, warp_exclusive_scan,
    warp_inclusive_scan, warp_reduce,
};
pub use exchange::{block_to_blocked, block_to_striped};
pub use grid::{GridGroup, this_grid};
pub use grid_collectives::{grid_exclusive_scan, grid_inclusive_scan, grid_reduce};
pub use histogram::{block_histogram, block_histogram_add};
pub use lanes::{LaneGroup, coalesced, labeled, lanes_of, this_warp, tile};
pub use look_back::{block_look_back, look_back_tile};
pub use merge::{block_merge, block_merge_sort};
pub use radix::{block_radix_rank, block_radix_sort, block_radix_sort_pairs};
pub use raking::{block_exclusive_scan_in, block_inclusive_scan_in};
