//! Sorting by digits of the keys, the last first, each digit stable (the "LSD radix sort" of D. Merrill, A. Grimshaw:
//! "High Performance and Scalable Radix Sorting", PPL 2011): the digits of each tile are counted, running sums of the counts
//! say where each tile's keys of a digit go, and the keys of a tile are ranked, put in order in shared memory and written.
//!
//! Keys are unsigned integers that are in the order of what they stand for; [`SortElement`](super::SortElement) makes them.

use kiln_device_stdlib::group::block_exclusive_scan;
use kiln_device_stdlib::plain::atomic::atomic_add_with;
use kiln_device_stdlib::plain::index::{block_idx, grid_dim, thread_idx};
use kiln_device_stdlib::plain::memory::barrier;
use kiln_device_stdlib::plain::ordering::Ordering;
use kiln_device_stdlib::plain::warp::{lane_id, lanemask_lt, match_any, warp_id, warp_sync};
use kiln_device_stdlib::warp::FULL_MASK;
use kiln_jit_core::args;
use kiln_jit_core::build::Kernel;
use kiln_jit_core::error::Result;
use kiln_jit_core::front::AsKernel as _;
use kiln_jit_core::ir::Scope;
use kiln_jit_core::jit::Jit;
use kiln_jit_core::runtime::Buffer;
use kiln_kernel_macro::{device_fn, kernel};

use super::keys::RadixKey;
use crate::scan::{scan_all, scan_all_sums};

/// Threads of a block, one for each value of a digit.
const BLOCK: u32 = 256;

/// Warps of a block.
const WARPS: usize = 8;

/// Keys of a thread.
const ITEMS: usize = 16;

/// Keys of a warp, and of a tile.
const OF_WARP: usize = 32 * ITEMS;
const TILE: usize = WARPS * OF_WARP;

/// Values of a digit.
const DIGITS: usize = 256;

/// Where each key of a tile goes among the keys of the tile, by digit and, of one digit, in order. `digits` are those of the
/// keys that this thread has: of its warp's keys, one in each run of 32. Of the digit of this thread's number, gives
/// where its keys begin.
#[device_fn]
fn rank(
    digits: [u32; ITEMS],
    ranks: &mut [u32; ITEMS],
    counts: &mut [[u32; DIGITS]; WARPS],
) -> u32 {
    let (thread, warp) = (thread_idx().x, warp_id() as usize);
    for of_warp in 0..WARPS {
        counts[of_warp][thread] = 0;
    }
    barrier();
    for i in 0..ITEMS {
        let digit = digits[i] as usize;
        let alike = match_any(FULL_MASK, digits[i]);
        let before = counts[warp][digit];
        warp_sync(FULL_MASK);
        let ahead = (alike & lanemask_lt()).count_ones();
        if ahead == 0 {
            counts[warp][digit] = before + alike.count_ones();
        }
        warp_sync(FULL_MASK);
        ranks[i] = before + ahead;
    }
    barrier();
    let mut sum = 0;
    for of_warp in 0..WARPS {
        let count = counts[of_warp][thread];
        counts[of_warp][thread] = sum;
        sum += count;
    }
    let start = block_exclusive_scan(sum, 0, |a, b| a + b);
    for of_warp in 0..WARPS {
        counts[of_warp][thread] += start;
    }
    barrier();
    for i in 0..ITEMS {
        ranks[i] += counts[warp][digits[i] as usize];
    }
    start
}

/// The kernels for keys of a type.
macro_rules! radix {
    ($($key:ident $count:ident $keys:ident $pairs:ident;)*) => {$(
        /// Counts the digits of each tile: those of value 0 of all tiles, then those of value 1, and so on.
        #[kernel]
        pub(super) fn $count(keys: &[$key], shift: u32, counts: &mut [u32]) {
            let (thread, tile, tiles) = (thread_idx().x, block_idx().x, grid_dim().x);
            let here = shared!([u32; DIGITS]);
            here[thread] = 0;
            barrier();
            for i in 0..ITEMS {
                let at = tile * TILE + i * BLOCK as usize + thread;
                if at < keys.len() {
                    atomic_add_with(
                        &mut here[((keys[at] >> shift) & 255) as usize],
                        1,
                        Ordering::Relaxed,
                        Scope::Block,
                    );
                }
            }
            barrier();
            counts[thread * tiles + tile] = here[thread];
        }

        /// Puts the keys in the order of a digit; `starts` are the running sums of the counts.
        #[kernel]
        pub(super) fn $keys(keys: &[$key], shift: u32, starts: &[u32], out: &mut [$key]) {
            let (thread, tile, tiles) = (thread_idx().x, block_idx().x, grid_dim().x);
            let (counts, memory) = (shared!([[u32; DIGITS]; WARPS]), shared!([$key; TILE]));
            let first_of = shared!([u32; DIGITS]);
            let first = tile * TILE + warp_id() as usize * OF_WARP + lane_id() as usize;
            let (mut mine, mut digits, mut ranks) =
                ([$key::MAX; ITEMS], [0u32; ITEMS], [0u32; ITEMS]);
            #[unroll]
            for i in 0..ITEMS {
                if first + 32 * i < keys.len() {
                    mine[i] = keys[first + 32 * i];
                }
                digits[i] = ((mine[i] >> shift) & 255) as u32;
            }
            let start = rank(digits, &mut ranks, counts);
            // What is subtracted of a rank is added to where the digit's keys of the tile begin.
            first_of[thread] = starts[thread * tiles + tile].wrapping_sub(start);
            #[unroll]
            for i in 0..ITEMS {
                memory[ranks[i] as usize] = mine[i];
            }
            barrier();
            let there = (keys.len() - tile * TILE).min(TILE);
            #[unroll]
            for i in 0..ITEMS {
                let at = i * BLOCK as usize + thread;
                if at < there {
                    let key = memory[at];
                    let to = first_of[((key >> shift) & 255) as usize].wrapping_add(at as u32);
                    out[to as usize] = key;
                }
            }
        }

        /// Puts the keys in the order of a digit, with a value beside each, which takes the same way.
        #[kernel]
        pub(super) fn $pairs(
            keys: &[$key],
            values: &[u32],
            shift: u32,
            starts: &[u32],
            out: &mut [$key],
            values_out: &mut [u32],
        ) {
            let (thread, tile, tiles) = (thread_idx().x, block_idx().x, grid_dim().x);
            let (counts, memory) = (shared!([[u32; DIGITS]; WARPS]), shared!([$key; TILE]));
            let first_of = shared!([u32; DIGITS]);
            let first = tile * TILE + warp_id() as usize * OF_WARP + lane_id() as usize;
            let (mut mine, mut digits, mut ranks) =
                ([$key::MAX; ITEMS], [0u32; ITEMS], [0u32; ITEMS]);
            let (mut beside, mut to) = ([0u32; ITEMS], [0u32; ITEMS]);
            #[unroll]
            for i in 0..ITEMS {
                if first + 32 * i < keys.len() {
                    mine[i] = keys[first + 32 * i];
                    beside[i] = values[first + 32 * i];
                }
                digits[i] = ((mine[i] >> shift) & 255) as u32;
            }
            let start = rank(digits, &mut ranks, counts);
            first_of[thread] = starts[thread * tiles + tile].wrapping_sub(start);
            #[unroll]
            for i in 0..ITEMS {
                memory[ranks[i] as usize] = mine[i];
            }
            barrier();
            let there = (keys.len() - tile * TILE).min(TILE);
            #[unroll]
            for i in 0..ITEMS {
                let at = i * BLOCK as usize + thread;
                if at < there {
                    let key = memory[at];
                    to[i] = first_of[((key >> shift) & 255) as usize].wrapping_add(at as u32);
                    out[to[i] as usize] = key;
                }
            }
            barrier();
            #[unroll]
            for i in 0..ITEMS {
                memory[ranks[i] as usize] = beside[i] as $key;
            }
            barrier();
            #[unroll]
            for i in 0..ITEMS {
                let at = i * BLOCK as usize + thread;
                if at < there {
                    values_out[to[i] as usize] = memory[at] as u32;
                }
            }
        }
    )*};
}
radix! {
    u32 count_u32 keys_u32 pairs_u32;
    u64 count_u64 keys_u64 pairs_u64;
}

/// The kernels of a type of keys.
macro_rules! keys {
    ($($key:ident $count:ident $keys:ident $pairs:ident;)*) => {$(
        impl RadixKey for $key {
            fn count() -> Result<&'static Kernel> {
                $count.as_kernel()
            }
            fn keys() -> Result<&'static Kernel> {
                $keys.as_kernel()
            }
            fn pairs() -> Result<&'static Kernel> {
                $pairs.as_kernel()
            }
        }
    )*};
}
keys! {
    u32 count_u32 keys_u32 pairs_u32;
    u64 count_u64 keys_u64 pairs_u64;
}

/// Puts keys in order by their last `bits` bits; gives back what had them.
///
/// # Errors
/// No memory; a device that has failed.
pub(crate) fn sort_keys<K: RadixKey>(
    jit: &Jit,
    mut keys: Buffer<K>,
    bits: u32,
) -> Result<Buffer<K>> {
    let mut other = jit.unspecified::<K>(keys.len())?;
    for shift in (0..bits).step_by(8) {
        let starts = starts(jit, &keys, shift)?;
        let (tiles, args) = (tiles(keys.len()), args!(&keys, shift, &starts, &mut other));
        jit.launch(K::keys()?, tiles, BLOCK, args)?;
        std::mem::swap(&mut keys, &mut other);
    }
    Ok(keys)
}

/// Puts numbers in the order of the keys beside them, by the last `bits` bits of these; alike ones stay as they are.
///
/// # Errors
/// No memory; a device that has failed.
pub(crate) fn sort_pairs<K: RadixKey>(
    jit: &Jit,
    mut keys: Buffer<K>,
    mut values: Buffer<u32>,
    bits: u32,
) -> Result<Buffer<u32>> {
    let mut other = jit.unspecified::<K>(keys.len())?;
    let mut other_values = jit.unspecified::<u32>(keys.len())?;
    for shift in (0..bits).step_by(8) {
        let starts = starts(jit, &keys, shift)?;
        let args = args!(
            &keys,
            &values,
            shift,
            &starts,
            &mut other,
            &mut other_values
        );
        jit.launch(K::pairs()?, tiles(keys.len()), BLOCK, args)?;
        std::mem::swap(&mut keys, &mut other);
        std::mem::swap(&mut values, &mut other_values);
    }
    Ok(values)
}

fn tiles(len: usize) -> u32 {
    len.div_ceil(TILE).max(1) as u32
}

/// Where the keys of each digit of each tile go.
fn starts<K: RadixKey>(jit: &Jit, keys: &Buffer<K>, shift: u32) -> Result<Buffer<u32>> {
    let tiles = tiles(keys.len());
    let len = DIGITS * tiles as usize;
    let mut counts = jit.unspecified::<u32>(len)?;
    jit.launch(K::count()?, tiles, BLOCK, args!(keys, shift, &mut counts))?;
    scan_all(jit, scan_all_sums.as_kernel()?, &counts, len, 0, true)
}
