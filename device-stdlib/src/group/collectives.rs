//! What the members of a group, or all threads of a block, compute together, with an operator of the kernel's.
//!
//! An operator is associative; it need not be commutative, as values are combined in the order of ranks. Rounds double
//! how many values have been combined (W. D. Hillis, G. L. Steele: "Data Parallel Algorithms", CACM 1986); a block has
//! the result of each warp in shared memory between two barriers, and combines these likewise (as CUB's
//! `BLOCK_REDUCE_WARP_REDUCTIONS` does in one thread).
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn of_tiles(x: &[u32], out: &mut [[u32; 3]]) {
//!     let (i, tile) = (global_id().x, tile(4));
//!     out[i] = [
//!         group_reduce(tile, x[i], |a, b| a + b),
//!         group_inclusive_scan(tile, x[i], |a, b| a + b),
//!         group_exclusive_scan(tile, x[i], 100, |a, b| a + b),
//!     ];
//! }
//!
//! #[kernel]
//! fn of_warps(x: &[u32], out: &mut [[u32; 3]]) {
//!     let i = global_id().x;
//!     out[i] = [
//!         warp_reduce(FULL_MASK, x[i], |a, b| a.max(b)),
//!         warp_inclusive_scan(FULL_MASK, x[i], |a, b| a.max(b)),
//!         warp_exclusive_scan(FULL_MASK, x[i], 0, |a, b| a.max(b)),
//!     ];
//! }
//!
//! #[kernel]
//! fn of_block(x: &[u32], out: &mut [[u32; 3]]) {
//!     let i = global_id().x;
//!     let sum = block_reduce_to_first(x[i], |a, b| a + b);
//!     assert!(i > 0 || sum == 23);
//!     // Each decimal is put behind those before it, which no other order gives.
//!     out[i] = [
//!         block_reduce((x[i], 10), |a, b| (a.0 * b.1 + b.0, a.1 * b.1)).0,
//!         block_inclusive_scan(x[i], |a, b| a + b),
//!         block_exclusive_scan(x[i], 1, |a, b| a * b),
//!     ];
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let (x, mut out) = (jit.upload(&[3, 1, 4, 1, 5, 9])?, jit.upload(&[[0; 3]; 6])?);
//! of_tiles.launch(&jit, (1, 6), &x, &mut out)?;
//! assert_eq!(out.to_vec()?[2..5], [[9, 8, 104], [9, 9, 108], [14, 5, 100]]);
//! of_warps.launch(&jit, (1, 6), &x, &mut out)?;
//! assert_eq!(out.to_vec()?[2..5], [[9, 4, 3], [9, 4, 4], [9, 5, 4]]);
//! of_block.launch(&jit, (1, 6), &x, &mut out)?;
//! assert_eq!(out.to_vec()?[2..5], [[314_159, 8, 3], [314_159, 9, 12], [314_159, 14, 12]]);
//! # Ok(())
//! # }
//! ```

use kiln_kernel_macro::device_fn;

use super::block::this_block;
use super::lanes::{LaneGroup, lanes_of, next_above, next_below};
use crate::plain::index::{block_dim, thread_idx};
use crate::plain::memory::barrier;
use crate::plain::warp::{lane_id, shuffle_down, shuffle_idx, shuffle_up, warp_id};

/// Combines the values of all members, which are lanes one after the other, for the first of them; others have a part.
/// From this member on there are `from_here`.
#[device_fn]
fn reduce_dense<T: DeviceType, F: Fn(T, T) -> T>(
    group: LaneGroup,
    from_here: u32,
    value: T,
    op: F,
) -> T {
    let mut sum = value;
    // After a round each member has its own value and those of the `2 * delta - 1` above it, as far as there are.
    for delta in [1, 2, 4, 8, 16] {
        if delta < group.width {
            let other = shuffle_down(group.members, sum, delta, 32);
            if delta < from_here {
                sum = op(sum, other);
            }
        }
    }
    sum
}

/// Combines the values of all members, any lanes, for the first of them: each knows the lane that is as many members
/// above.
#[device_fn]
fn reduce_sparse<T: DeviceType, F: Fn(T, T) -> T>(group: LaneGroup, value: T, op: F) -> T {
    let mut sum = value;
    let mut above = next_above(group.members);
    let mut delta = 1;
    while delta < group.width {
        let is_there = above < 32;
        let from = if is_there { above } else { lane_id() };
        let other = shuffle_idx(group.members, sum, from, 32);
        let further = shuffle_idx(group.members, above, from, 32);
        if is_there {
            sum = op(sum, other);
        }
        above = further;
        delta *= 2;
    }
    sum
}

/// Combines the values of all members of a group by `op`, in the order of their ranks, for all members (CUDA
/// `cooperative_groups::reduce`).
#[device_fn]
pub fn group_reduce<T: DeviceType, F: Fn(T, T) -> T>(group: LaneGroup, value: T, op: F) -> T {
    let sum = if group.is_dense() {
        reduce_dense(group, group.size() - group.rank(), value, |a, b| op(a, b))
    } else {
        reduce_sparse(group, value, |a, b| op(a, b))
    };
    group.broadcast(sum)
}

/// Combines the values of the members up to this one of a rank, which are lanes one after the other.
#[device_fn]
pub(super) fn scan_dense<T: DeviceType, F: Fn(T, T) -> T>(
    group: LaneGroup,
    rank: u32,
    value: T,
    op: F,
) -> T {
    let mut sum = value;
    for delta in [1, 2, 4, 8, 16] {
        if delta < group.width {
            let other = shuffle_up(group.members, sum, delta, 32);
            if delta <= rank {
                sum = op(other, sum);
            }
        }
    }
    sum
}

/// Combines the values of the members up to this one, any lanes: each knows the lane that is as many members below.
#[device_fn]
fn scan_sparse<T: DeviceType, F: Fn(T, T) -> T>(group: LaneGroup, value: T, op: F) -> T {
    let mut sum = value;
    let mut below = next_below(group.members);
    let mut delta = 1;
    while delta < group.width {
        let is_there = below < 32;
        let from = if is_there { below } else { lane_id() };
        let other = shuffle_idx(group.members, sum, from, 32);
        let further = shuffle_idx(group.members, below, from, 32);
        if is_there {
            sum = op(other, sum);
        }
        below = further;
        delta *= 2;
    }
    sum
}

/// Combines the values of the members of a group up to this one, and its own (CUDA
/// `cooperative_groups::inclusive_scan`).
#[device_fn]
pub fn group_inclusive_scan<T: DeviceType, F: Fn(T, T) -> T>(
    group: LaneGroup,
    value: T,
    op: F,
) -> T {
    if group.is_dense() {
        scan_dense(group, group.rank(), value, |a, b| op(a, b))
    } else {
        scan_sparse(group, value, |a, b| op(a, b))
    }
}

/// Combines the values of the members of a group below this one, after `first`, which alone the first member gets
/// (CUDA `cooperative_groups::exclusive_scan`).
#[device_fn]
pub fn group_exclusive_scan<T: DeviceType, F: Fn(T, T) -> T>(
    group: LaneGroup,
    value: T,
    first: T,
    op: F,
) -> T {
    let sum = group_inclusive_scan(group, value, |a, b| op(a, b));
    let below = next_below(group.members);
    let from = if below < 32 { below } else { lane_id() };
    let before = shuffle_idx(group.members, sum, from, 32);
    if below < 32 { op(first, before) } else { first }
}

/// [`group_reduce()`] of the lanes of a mask that have not ended.
#[device_fn]
pub fn warp_reduce<T: DeviceType, F: Fn(T, T) -> T>(mask: u32, value: T, op: F) -> T {
    group_reduce(lanes_of(mask), value, |a, b| op(a, b))
}

/// [`group_inclusive_scan()`] of the lanes of a mask that have not ended.
#[device_fn]
pub fn warp_inclusive_scan<T: DeviceType, F: Fn(T, T) -> T>(mask: u32, value: T, op: F) -> T {
    group_inclusive_scan(lanes_of(mask), value, |a, b| op(a, b))
}

/// [`group_exclusive_scan()`] of the lanes of a mask that have not ended.
#[device_fn]
pub fn warp_exclusive_scan<T: DeviceType, F: Fn(T, T) -> T>(
    mask: u32,
    value: T,
    first: T,
    op: F,
) -> T {
    group_exclusive_scan(lanes_of(mask), value, first, |a, b| op(a, b))
}

/// How many threads a block has.
#[device_fn]
pub(super) fn threads() -> usize {
    block_dim().x * block_dim().y * block_dim().z
}

/// How many lanes this warp has. Where blocks are of whole warps, as the kernel may have it assumed, that is no question.
#[device_fn]
pub(super) fn lanes_here() -> u32 {
    if threads() % 32 == 0 {
        32
    } else {
        (threads() as u32 - 32 * warp_here()).min(32)
    }
}

/// Which warp of the block this is, below 32. In blocks of one dimension, as the kernel may have it assumed, the others
/// are not asked for.
#[device_fn]
pub(super) fn warp_here() -> u32 {
    if block_dim().y == 1 && block_dim().z == 1 {
        thread_idx().x as u32 / 32 % 32
    } else {
        warp_id() % 32
    }
}

/// The number of the thread in its block; of one dimension, as [`warp_here()`] has it.
#[device_fn]
pub(super) fn rank_here() -> usize {
    if block_dim().y == 1 && block_dim().z == 1 {
        thread_idx().x
    } else {
        this_block().rank() as usize
    }
}

/// Combines the values of this warp of a block for its first lane; others have a part. Of a whole warp, as all but the
/// last are, that is without a question how many lanes there are.
#[device_fn]
fn reduce_warp<T: DeviceType, F: Fn(T, T) -> T>(value: T, op: F) -> T {
    let lanes = lanes_here();
    if lanes == 32 {
        reduce_dense(LaneGroup::of_first(32), 32 - lane_id(), value, |a, b| {
            op(a, b)
        })
    } else {
        reduce_dense(
            LaneGroup::of_first(lanes),
            lanes - lane_id(),
            value,
            |a, b| op(a, b),
        )
    }
}

/// Combines the values of the lanes of this warp of a block up to this one.
#[device_fn]
fn scan_warp<T: DeviceType, F: Fn(T, T) -> T>(value: T, op: F) -> T {
    let lanes = lanes_here();
    if lanes == 32 {
        scan_dense(LaneGroup::of_first(32), lane_id(), value, |a, b| op(a, b))
    } else {
        scan_dense(LaneGroup::of_first(lanes), lane_id(), value, |a, b| {
            op(a, b)
        })
    }
}

/// Up to how many warps a thread reads what each has left, which are few wide accesses; beyond, the lanes of a whole
/// warp read one each and shuffle.
const FEW: u32 = 8;

/// Up to how many warps a thread reads what each has left where one warp does it. Where that warp shuffles, under a condition,
/// `ptxas` asks before the shuffles of all warps whether their lanes are there.
const FEW_FOR_ONE: u32 = 16;

/// Combines what the first `count` warps of a block have left, 1 to [`FEW_FOR_ONE`], by reading one after the other.
#[device_fn]
fn reduce_read<T: DeviceType, F: Fn(T, T) -> T>(left: &[T; 32], count: u32, op: F) -> T {
    let mut sum = left[0];
    for warp in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] {
        if (warp as u32) < count {
            sum = op(sum, left[warp]);
        }
    }
    sum
}

/// Combines what the first `count` warps of a block have left for the first lane of a warp, whose lanes read one each.
#[device_fn]
fn reduce_shuffled<T: DeviceType, F: Fn(T, T) -> T>(left: &[T; 32], count: u32, op: F) -> T {
    let (lane, group) = (lane_id(), LaneGroup::of_first(32));
    // What lanes behind read is combined with nothing.
    let own = left[lane.min(count - 1) as usize];
    let from_here = count.saturating_sub(lane);
    reduce_dense(group, from_here, own, |a, b| op(a, b))
}

/// Combines what the first `count` warps of a block have left, one at least, for the threads of a warp.
#[device_fn]
fn reduce_left<T: DeviceType, F: Fn(T, T) -> T>(left: &[T; 32], count: u32, op: F) -> T {
    if count <= FEW {
        reduce_read(left, count, |a, b| op(a, b))
    } else if lanes_here() == 32 {
        let sum = reduce_shuffled(left, count, |a, b| op(a, b));
        LaneGroup::of_first(32).broadcast(sum)
    } else {
        let mut sum = left[0];
        for warp in 1..count as usize {
            sum = op(sum, left[warp]);
        }
        sum
    }
}

/// Combines the values of all threads of the block by `op`, in the order of threads, for all of them.
/// [`block_reduce_to_first()`] does less, where one thread is enough.
///
/// All threads of the block come here, none of which has ended. It is a barrier, too, if the block has more than one
/// warp.
#[device_fn]
pub fn block_reduce<T: DeviceType, F: Fn(T, T) -> T>(value: T, op: F) -> T {
    let mut sum = reduce_warp(value, |a, b| op(a, b));
    let count = threads();
    if count <= 32 {
        sum = LaneGroup::of_first(count as u32).broadcast(sum);
    } else {
        let (warps, left) = (count.div_ceil(32) as u32, shared!([T; 32]));
        // The threads of another call have read it.
        barrier();
        if lane_id() == 0 {
            left[warp_here() as usize] = sum;
        }
        barrier();
        if warps <= FEW {
            sum = reduce_left(left, warps, |a, b| op(a, b));
        } else {
            // One warp does it, so that all threads have the same sum of floats.
            if warp_here() == 0 {
                sum = reduce_left(left, warps, |a, b| op(a, b));
                if lane_id() == 0 {
                    left[0] = sum;
                }
            }
            barrier();
            sum = left[0];
        }
    }
    sum
}

/// Combines the values of all threads of the block by `op`, in the order of threads, for the first thread; what others
/// get is a part (CUB `BlockReduce`).
///
/// All threads of the block come here, none of which has ended. It is a barrier, too, if the block has more than one
/// warp.
#[device_fn]
pub fn block_reduce_to_first<T: DeviceType, F: Fn(T, T) -> T>(value: T, op: F) -> T {
    let mut sum = reduce_warp(value, |a, b| op(a, b));
    let count = threads();
    if count > 32 {
        let left = shared!([T; 32]);
        barrier();
        if lane_id() == 0 {
            left[warp_here() as usize] = sum;
        }
        barrier();
        if warp_here() == 0 {
            let warps = count.div_ceil(32) as u32;
            // A block of several warps has a whole first one.
            sum = if warps <= FEW_FOR_ONE {
                reduce_read(left, warps, |a, b| op(a, b))
            } else {
                reduce_shuffled(left, warps, |a, b| op(a, b))
            };
        }
    }
    sum
}

/// Combines the values of the threads of the block up to this one, and its own (CUB `BlockScan::InclusiveScan`).
///
/// All threads of the block come here, none of which has ended. It is a barrier, too, if the block has more than one
/// warp.
#[device_fn]
pub fn block_inclusive_scan<T: DeviceType, F: Fn(T, T) -> T>(value: T, op: F) -> T {
    let mut sum = scan_warp(value, |a, b| op(a, b));
    if threads() > 32 {
        let (warp, left) = (warp_here(), shared!([T; 32]));
        barrier();
        if lane_id() + 1 == lanes_here() {
            left[warp as usize] = sum;
        }
        barrier();
        if warp > 0 {
            sum = op(reduce_left(left, warp, |a, b| op(a, b)), sum);
        }
    }
    sum
}

/// Combines the values of the threads of the block below this one, after `first`, which alone the first thread gets
/// (CUB `BlockScan::ExclusiveScan`).
///
/// All threads of the block come here, none of which has ended. It is a barrier, too, if the block has more than one
/// warp.
#[device_fn]
pub fn block_exclusive_scan<T: DeviceType, F: Fn(T, T) -> T>(value: T, first: T, op: F) -> T {
    let sum = scan_warp(value, |a, b| op(a, b));
    let below = shuffle_up(LaneGroup::of_first(lanes_here()).members, sum, 1, 32);
    let mut before = first;
    if threads() > 32 {
        let (warp, left) = (warp_here(), shared!([T; 32]));
        barrier();
        if lane_id() + 1 == lanes_here() {
            left[warp as usize] = sum;
        }
        barrier();
        if warp > 0 {
            before = op(before, reduce_left(left, warp, |a, b| op(a, b)));
        }
    }
    if lane_id() == 0 {
        before
    } else {
        op(before, below)
    }
}
