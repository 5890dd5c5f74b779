//! Elements that are kept, in order, in one pass: each block counts those of a tile, and learns by look-back how many
//! the tiles before have, as for running sums.

use kiln_device_stdlib::group::block_exclusive_scan;
use kiln_device_stdlib::plain::assumption::assume;
use kiln_device_stdlib::plain::atomic::atomic_add;
use kiln_device_stdlib::plain::index::{block_dim, thread_idx};
use kiln_device_stdlib::plain::memory::barrier;
use kiln_device_stdlib::plain::warp::{ballot, lane_id, lanemask_lt, warp_id};
use kiln_device_stdlib::warp::FULL_MASK;
use kiln_jit_core::args;
use kiln_jit_core::error::Result;
use kiln_jit_core::front::AsKernel as _;
use kiln_jit_core::jit::Jit;
use kiln_jit_core::runtime::{Buffer, Part};
use kiln_jit_core::value::KernelType;
use kiln_kernel_macro::{device_fn, kernel};

use super::look_back::{BLOCK, look_back};

/// Elements of a thread.
const ITEMS: usize = 16;

/// Elements of a tile.
const TILE: usize = BLOCK as usize * ITEMS;

/// Warps of a block.
const WARPS: usize = BLOCK as usize / 32;

/// Runs of 32 elements of a tile, each of which a warp counts at once.
const RUNS: usize = ITEMS * WARPS;

/// Makes of how many elements of each run are kept how many are before, and tells how many of the tile are.
#[device_fn]
fn place_runs(counts: &mut [u32; RUNS], of_tile: &mut [u32; 2]) {
    let thread = thread_idx().x;
    barrier();
    let own = if thread < RUNS { counts[thread] } else { 0 };
    let before = block_exclusive_scan(own, 0, |a, b| a + b);
    if thread < RUNS {
        counts[thread] = before;
    }
    if thread + 1 == BLOCK as usize {
        of_tile[0] = before + own;
    }
    barrier();
}

/// Writes the elements that are kept.
#[kernel]
fn select<T: DeviceType>(
    x: &[T],
    keep: &[bool],
    out: &mut [T],
    state: &mut [u32],
    sums: &mut [u32],
    totals: &mut [u32],
) {
    assume(block_dim().x == BLOCK as usize && block_dim().y == 1 && block_dim().z == 1);
    let (thread, warp) = (thread_idx().x, warp_id() as usize);
    let (counts, of_tile) = (shared!([u32; RUNS]), shared!([u32; 2]));
    let ticket = shared!([u32; 1]);
    if thread == 0 {
        ticket[0] = atomic_add(&mut state[0], 1);
    }
    barrier();
    let tile = ticket[0] as usize;
    let first = tile * TILE + thread;
    // All that a thread reads is on its way before it waits for some of it.
    let (mut is_kept, mut kept) = ([false; ITEMS], [0u32; ITEMS]);
    let mut items = [x[tile * TILE]; ITEMS];
    #[unroll]
    for i in 0..ITEMS {
        let at = first + i * BLOCK as usize;
        if at < x.len() && at < keep.len() {
            is_kept[i] = keep[at];
            items[i] = x[at];
        }
    }
    #[unroll]
    for i in 0..ITEMS {
        kept[i] = ballot(FULL_MASK, is_kept[i]);
        if lane_id() == 0 {
            counts[i * WARPS + warp] = kept[i].count_ones();
        }
    }
    place_runs(counts, of_tile);
    if thread < 32 {
        let all = of_tile[0];
        let before = look_back(tile, all, 0, state, sums, totals, |a, b| a + b);
        if thread == 0 {
            of_tile[1] = before;
        }
    }
    barrier();
    let before = of_tile[1];
    #[unroll]
    for i in 0..ITEMS {
        if is_kept[i] {
            let of_run = (kept[i] & lanemask_lt()).count_ones();
            let to = before + counts[i * WARPS + warp] + of_run;
            out[to as usize] = items[i];
        }
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
    let mut state = jit.zeros::<u32>(1 + tiles)?;
    let mut sums = jit.unspecified::<u32>(tiles)?;
    let mut totals = jit.unspecified::<u32>(tiles)?;
    let args = args!(x, keep, &mut out, &mut state, &mut sums, &mut totals);
    jit.launch(select.as_kernel()?, tiles as u32, BLOCK, args)?;
    let count = totals.part(tiles - 1..tiles)?.to_vec()?[0];
    Ok((out, count as usize))
}
