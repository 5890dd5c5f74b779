//! Elements that are kept, in order, in one pass: each block counts those of a tile, and learns by look-back how many
//! the tiles before have, as for running sums.
//!
//! Where in the tile the elements are that are kept is put together in shared memory, so that threads beside each other
//! read elements near each other and write them side by side, and so that the elements of a tile, of any type, are read
//! while its first warp looks back.

use kiln_device_stdlib::plain::assumption::assume;
use kiln_device_stdlib::plain::index::{block_dim, thread_idx};
use kiln_device_stdlib::plain::memory::barrier;
use kiln_device_stdlib::plain::warp::{lane_id, shuffle_idx};
use kiln_device_stdlib::warp::FULL_MASK;
use kiln_jit_core::args;
use kiln_jit_core::error::Result;
use kiln_jit_core::front::AsKernel as _;
use kiln_jit_core::jit::Jit;
use kiln_jit_core::runtime::{Buffer, Part};
use kiln_jit_core::value::KernelType;
use kiln_kernel_macro::{device_fn, kernel};

use super::look_back::{
    BLOCK, WARPS, before_tile, nothing_said, publish_all, publish_own, scan_lanes, tile_by_ticket,
};

/// Marks next to each other that a thread has, and runs of a warp.
const WIDE: usize = 4;
const RUNS: usize = 4;

/// Elements of a thread, of a run, of a warp, and of a tile.
const ITEMS: usize = WIDE * RUNS;
const RUN: usize = 32 * WIDE;
const OF_WARP: usize = RUNS * RUN;
const TILE: usize = WARPS * OF_WARP;

/// Bits of how many elements of a run are kept, 128 at most.
const BITS: u32 = 8;

/// Elements that a thread reads before it waits for what the tiles before have.
const AT_ONCE: usize = 8;

/// Elements of a block that are read at once.
const BATCH: usize = AT_ONCE * BLOCK as usize;

/// Which of its elements of a tile a thread keeps, the first of which is there or would be.
#[device_fn]
fn marks(keep: &[bool], first: usize, is_whole: bool) -> [bool; ITEMS] {
    let mut marks = [false; ITEMS];
    if is_whole {
        #[unroll]
        for run in 0..RUNS {
            #[unroll]
            for i in 0..WIDE {
                marks[run * WIDE + i] = keep[first + run * RUN + i];
            }
        }
    } else {
        #[unroll]
        for i in 0..ITEMS {
            let at = first + i / WIDE * RUN + i % WIDE;
            if at < keep.len() {
                marks[i] = keep[at];
            }
        }
    }
    marks
}

/// Writes where in a tile the elements are that are kept, and says how many; gives that.
#[device_fn]
fn find(marks: [bool; ITEMS], tile: usize, places: &mut [u16; TILE], state: &mut [u64]) -> u32 {
    let (warp, counts) = (thread_idx().x / 32, shared!([u32; WARPS]));
    // Those of each run, beside each other in one number.
    let mut own = 0u32;
    #[unroll]
    for i in 0..ITEMS {
        own += (marks[i] as u32) << (BITS * (i / WIDE) as u32);
    }
    let up_to = scan_lanes(own, |a, b| a + b);
    let (before, of_runs) = (up_to - own, shuffle_idx(FULL_MASK, up_to, 31, 32));
    if lane_id() == 0 {
        let mut sum = 0u32;
        #[unroll]
        for run in 0..RUNS {
            sum += (of_runs >> (BITS * run as u32)) & 255;
        }
        counts[warp] = sum;
    }
    barrier();
    let (mut start, mut all) = (0u32, 0u32);
    #[unroll]
    for i in 0..WARPS {
        if i == warp {
            start = all;
        }
        all += counts[i];
    }
    if warp == 0 && tile > 0 {
        publish_own(tile, all, state);
    }
    let first = warp * OF_WARP + thread_idx().x % 32 * WIDE;
    #[unroll]
    for run in 0..RUNS {
        let shift = BITS * run as u32;
        let mut to = start + ((before >> shift) & 255);
        #[unroll]
        for i in 0..WIDE {
            if marks[run * WIDE + i] {
                // Below it in any case; so it need not be asked.
                places[to as usize % TILE] = (first + run * RUN + i) as u16;
                to += 1;
            }
        }
        start += (of_runs >> shift) & 255;
    }
    barrier();
    all
}

/// The elements that a thread writes first, of those that are kept, the first of which it has there; beyond them is any.
#[device_fn]
fn batch<T: DeviceType>(
    x: &[T],
    start: usize,
    places: &[u16; TILE],
    first: usize,
    all: u32,
) -> [T; AT_ONCE] {
    // All places are known before the first element is asked for, so that no load is behind the question of another.
    let mut from = [start; AT_ONCE];
    #[unroll]
    for i in 0..AT_ONCE {
        let at = first + i * BLOCK as usize;
        if at < all as usize {
            from[i] = start + places[at] as usize;
        }
    }
    let mut items = [x[start]; AT_ONCE];
    #[unroll]
    for i in 0..AT_ONCE {
        items[i] = x[from[i]];
    }
    items
}

/// Writes a batch.
#[device_fn]
fn store<T: DeviceType>(items: [T; AT_ONCE], out: &mut [T], before: u32, first: usize, all: u32) {
    #[unroll]
    for i in 0..AT_ONCE {
        let at = first + i * BLOCK as usize;
        if at < all as usize {
            out[before as usize + at] = items[i];
        }
    }
}

/// Writes the elements that are kept.
#[kernel]
fn select<T: DeviceType>(x: &[T], keep: &[bool], out: &mut [T], state: &mut [u64]) {
    assume(block_dim().x == BLOCK as usize && block_dim().y == 1 && block_dim().z == 1);
    let (places, before) = (shared!([u16; TILE]), shared!([u32; 1]));
    let (thread, tile) = (thread_idx().x, tile_by_ticket(state));
    let (warp, lane, start) = (thread / 32, thread % 32, tile * TILE);
    let first = start + warp * OF_WARP + lane * WIDE;
    let is_whole = first + (RUNS - 1) * RUN + (WIDE - 1) < keep.len();
    let marks = marks(keep, first, is_whole);
    let all = find(marks, tile, places, state);
    let items = batch(x, start, places, thread, all);
    if warp == 0 {
        let of_tiles = before_tile(tile, 0u32, state, |a, b| a + b);
        publish_all(tile, of_tiles + all, state);
        if lane == 0 {
            before[0] = of_tiles;
        }
    }
    barrier();
    let before = before[0];
    store(items, out, before, thread, all);
    if all as usize > BATCH {
        let first = BATCH + thread;
        store(batch(x, start, places, first, all), out, before, first, all);
    }
}

/// The elements of `x` for which `keep` is true, at the start of a buffer as long as `x`, and how many these are, which
/// is read from the device.
///
/// # Errors
/// No memory; a device that has failed.
pub(crate) fn select_of<T: KernelType>(
    jit: &Jit,
    x: &Part<T>,
    keep: &Part<bool>,
) -> Result<(Buffer<T>, usize)> {
    let tiles = x.len().div_ceil(TILE);
    let mut out = jit.unspecified::<T>(x.len())?;
    if tiles == 0 {
        return Ok((out, 0));
    }
    let mut state = nothing_said::<u32>(jit, tiles)?;
    let args = args!(x, keep, &mut out, &mut state);
    jit.launch(select.as_kernel()?, tiles as u32, BLOCK, args)?;
    // What all tiles have is what the last one has said, in the lower half of its word.
    let count = state.part(tiles..tiles + 1)?.to_vec()?[0] as u32;
    Ok((out, count as usize))
}
