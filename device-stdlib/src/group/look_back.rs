//! What the tiles before this one come to, where a grid goes over its elements once: each block combines its tile, and looks
//! back at what the tiles before have left, their own sums or the sum of all up to them, until it has all of it (D. Merrill,
//! M. Garland: "Single-pass Parallel Prefix Scan with Decoupled Look-back", NVIDIA 2016).
//!
//! ```
//! use kiln::prelude::*;
//!
//! /// Keeps the positive numbers, in order.
//! #[kernel]
//! fn compact(x: &[i32], out: &mut [i32], state: &mut [u32], sums: &mut [u32], totals: &mut [u32]) {
//!     // Blocks take tiles in the order in which they begin, so that those which are waited for have begun.
//!     let tile = look_back_tile(state);
//!     let i = tile * block_dim().x + thread_idx().x;
//!     let keep = i < x.len() && x[i] > 0;
//!     let at = block_exclusive_scan(keep as u32, 0, |a, b| a + b);
//!     let own = block_reduce_to_first(keep as u32, |a, b| a + b);
//!     let before = block_look_back(tile, own, 0, state, sums, totals, |a, b| a + b);
//!     if keep {
//!         out[(before + at) as usize] = x[i];
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let x: Vec<i32> = (0..1000).map(|i| i * 37 % 101 - 50).collect();
//! let tiles = x.len().div_ceil(64);
//! let mut out = jit.zeros(x.len())?;
//! // Zeros, before each launch.
//! let mut state = jit.zeros(1 + tiles)?;
//! let (mut sums, mut totals) = (jit.zeros(tiles)?, jit.zeros(tiles)?);
//! let x_there = jit.upload(&x)?;
//! compact.launch(&jit, (tiles, 64), &x_there, &mut out, &mut state, &mut sums, &mut totals)?;
//! let positive: Vec<i32> = x.into_iter().filter(|x| *x > 0).collect();
//! assert_eq!(out.to_vec()?[..positive.len()], positive);
//! # Ok(())
//! # }
//! ```

use kiln_jit_core::ir::Scope;
use kiln_kernel_macro::device_fn;

use super::block::this_block;
use super::lanes::LaneGroup;
use crate::plain::atomic::{atomic_add, atomic_load, atomic_store};
use crate::plain::memory::barrier;
use crate::plain::ordering::Ordering;
use crate::plain::warp::{ballot, lane_id, shuffle_down, shuffle_idx};

/// What is known of a tile: nothing, its own sum, the sum of all elements up to its end.
const NOTHING: u32 = 0;
const OWN: u32 = 1;
const ALL: u32 = 2;

/// The next tile, which no other block has: they are given in the order in which blocks come here.
///
/// `state` has a number for each tile and one more, which are zeros when the kernel is launched. All threads of the block
/// come here, none of which has ended; it is a barrier, too.
#[device_fn]
pub fn look_back_tile(state: &mut [u32]) -> usize {
    let ticket = shared!(u32);
    barrier();
    if this_block().rank() == 0 {
        *ticket = atomic_add(&mut state[0], 1);
    }
    barrier();
    *ticket as usize
}

/// What the tiles before this one come to, combined by `op` in their order, behind `first`, for all threads of the block;
/// for the first tile that is `first`. `own` is what this tile comes to, of the first thread.
///
/// `op` is associative. `state` is that of [`look_back_tile()`], which has given the tile; `sums` and `totals` have an
/// element for each tile, whatever is in it. All threads of the block come here, none of which has ended; it is a barrier,
/// too. What blocks of earlier tiles wrote before it is not ordered by it for this block, but what they gave is.
#[device_fn]
pub fn block_look_back<T: DeviceType, F: Fn(T, T) -> T>(
    tile: usize,
    own: T,
    first: T,
    state: &mut [u32],
    sums: &mut [T],
    totals: &mut [T],
    op: F,
) -> T {
    let found = shared!([T; 1]);
    barrier();
    if this_block().rank() < 32 {
        if this_block().rank() == 0 && tile > 0 {
            sums[tile] = own;
            atomic_store(&mut state[1 + tile], OWN, Ordering::Release, Scope::Device);
        }
        let before = look_back(tile, first, state, sums, totals, |a, b| op(a, b));
        if this_block().rank() == 0 {
            totals[tile] = op(before, own);
            atomic_store(&mut state[1 + tile], ALL, Ordering::Release, Scope::Device);
            found[0] = before;
        }
    }
    barrier();
    found[0]
}

/// What the tiles before this one come to, behind `first`, for the first warp of a block.
#[device_fn]
fn look_back<T: DeviceType, F: Fn(T, T) -> T>(
    tile: usize,
    first: T,
    state: &mut [u32],
    sums: &mut [T],
    totals: &mut [T],
    op: F,
) -> T {
    let lanes = this_block().size().min(32) as usize;
    let (lane, mask) = (
        lane_id() as usize,
        LaneGroup::of_first(lanes as u32).members,
    );
    let (mut before, mut is_begun, mut end) = (first, false, tile);
    while end > 0 {
        // Lane 0 has the last of these tiles.
        let is_there = lane < end;
        let at = if is_there { end - 1 - lane } else { 0 };
        let mut flag = ALL;
        if is_there {
            flag = atomic_load(&state[1 + at], Ordering::Acquire, Scope::Device);
            while flag == NOTHING {
                flag = atomic_load(&state[1 + at], Ordering::Acquire, Scope::Device);
            }
        }
        // The tile next to this one that has the sum of all before it, too; there is one at the latest before the first.
        let last = ballot(mask, flag == ALL).trailing_zeros() as usize;
        let count = (last + 1).min(lanes).min(end);
        let mut sum = first;
        if lane < count {
            sum = if flag == ALL { totals[at] } else { sums[at] };
        }
        for delta in [1, 2, 4, 8, 16] {
            let earlier = shuffle_down(mask, sum, delta, 32);
            if lane + (delta as usize) < count {
                sum = op(earlier, sum);
            }
        }
        sum = shuffle_idx(mask, sum, 0, 32);
        before = if is_begun { op(sum, before) } else { sum };
        is_begun = true;
        end = if last < lanes { 0 } else { end - count };
    }
    before
}
