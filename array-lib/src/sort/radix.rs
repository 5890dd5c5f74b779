//! Sorting by digits of the keys, the last first, each digit stable, and each by one pass (A. Adinets, D. Merrill:
//! "Onesweep: A Faster Least Significant Digit Radix Sort for GPUs", 2022): all digits are counted at once, before; in
//! the pass of a digit each tile of keys is ranked in shared memory, and learns from those before it how many keys of
//! each value these have (decoupled look-back, as of running sums in `scan/look_back.rs`).
//!
//! On a CPU, whose threads are few and may be held up, no block waits for another: the digits of each tile are counted
//! by a launch of their own, and running sums of the counts say where its keys go.
//!
//! Keys are unsigned integers that are in the order of what they stand for: the first pass makes them of the elements,
//! the last makes elements of them ([`SortElement`](super::SortElement)).

use std::sync::Arc;

use kiln_device_stdlib::group::block_exclusive_scan;
use kiln_device_stdlib::plain::assumption::assume;
use kiln_device_stdlib::plain::atomic::{atomic_add, atomic_add_with, atomic_load, atomic_store};
use kiln_device_stdlib::plain::index::{block_dim, block_idx, grid_dim, thread_idx};
use kiln_device_stdlib::plain::memory::barrier;
use kiln_device_stdlib::plain::ordering::Ordering;
use kiln_device_stdlib::plain::warp::{
    ballot, lane_id, lanemask_lt, shuffle_idx, warp_id, warp_sync,
};
use kiln_device_stdlib::target::target_is_gpu;
use kiln_device_stdlib::warp::FULL_MASK;
use kiln_jit_core::args;
use kiln_jit_core::args::IntoArg;
use kiln_jit_core::build::Kernel;
use kiln_jit_core::error::Result;
use kiln_jit_core::front::AsKernel as _;
use kiln_jit_core::ir::Scope;
use kiln_jit_core::jit::Jit;
use kiln_jit_core::runtime::{Buffer, Part};
use kiln_jit_core::value::KernelType;
use kiln_kernel_macro::{device_fn, kernel};

use super::keys::{RadixKey, SortElement};
use crate::fused::is_gpu;
use crate::scan::{ScanAll, scan_all};

/// Threads of a block, one for each value of a digit.
const BLOCK: u32 = 256;

/// Warps of a block.
const WARPS: usize = 8;

/// Keys of a thread, as many as shared memory has places for the keys of a tile; of half a word, and of a whole one.
const ITEMS_U32: usize = 24;
const ITEMS_U64: usize = 16;

/// The most keys of a tile.
const LARGEST: usize = BLOCK as usize * ITEMS_U32;

/// Values of a digit.
const DIGITS: usize = 256;

/// Keys of a thread and of a block whose digits are counted at a time.
const OF_COUNTED: usize = 8;
const COUNTED: usize = OF_COUNTED * BLOCK as usize;

/// Tiles before one that a thread asks for at once.
const WINDOW: usize = 4;

/// Blocks that count digits, for each multiprocessor.
const COUNTING: u32 = 8;

/// What is known of a tile's keys of a value: nothing; how many there are, and one; or how many there are up to the end
/// of the tile, and this.
const NOTHING: u32 = 0;
const ALL: u32 = LARGEST as u32 + 2;

/// The most elements that are sorted: as many as can be told from what is known of tiles.
pub(super) const MOST: usize = (u32::MAX - ALL) as usize;

/// The lanes of a warp with this digit: bit by bit, as a match of all 32 bits takes longer on GPUs than eight votes do
/// (CUB's `warp_matcher_t` has votes for this reason), and so does a word of shared memory in which lanes set their bits
/// (`benches/RESULTS.md`).
#[device_fn]
fn lanes_alike(digit: u32) -> u32 {
    // The grid has one row, which is not known when this is compiled: whether a known bit is set takes LLVM three
    // instructions, and of any other one.
    let one = grid_dim().y as u32;
    let mut alike = FULL_MASK;
    #[unroll]
    for bit in 0..8 {
        let is_set = digit & (one << bit) != 0;
        let lanes = ballot(FULL_MASK, is_set);
        alike &= if is_set { lanes } else { !lanes };
    }
    alike
}

/// Counts the keys of a tile by digit, and leaves of each warp how many of each there are in the warps before it. Gives
/// how many there are of the digit of this thread's number. `digits` are those of the keys that this thread has.
#[device_fn]
fn counts_before<const N: usize>(digits: &[u32; N], counts: &mut [[u32; DIGITS]; WARPS]) -> u32 {
    let (thread, warp) = (thread_idx().x, warp_id() as usize);
    for of_warp in 0..WARPS {
        counts[of_warp][thread] = 0;
    }
    barrier();
    #[unroll]
    for i in 0..N {
        let count = &mut counts[warp][digits[i] as usize];
        atomic_add_with(count, 1, Ordering::Relaxed, Scope::Block);
    }
    barrier();
    sum_up(counts)
}

/// Makes of the counts of each warp of this thread's digit those of the warps before it; gives those of all.
#[device_fn]
fn sum_up(counts: &mut [[u32; DIGITS]; WARPS]) -> u32 {
    let (thread, mut sum) = (thread_idx().x, 0);
    for of_warp in 0..WARPS {
        let count = counts[of_warp][thread];
        counts[of_warp][thread] = sum;
        sum += count;
    }
    sum
}

/// Adds to the counts of each warp where this thread's digit, of which the tile has `own` keys, begins; gives that.
#[device_fn]
fn add_starts(own: u32, counts: &mut [[u32; DIGITS]; WARPS]) -> u32 {
    let thread = thread_idx().x;
    let start = block_exclusive_scan(own, 0, |a, b| a + b);
    for of_warp in 0..WARPS {
        counts[of_warp][thread] += start;
    }
    barrier();
    start
}

/// Where each key of a tile goes among the keys of the tile, by digit and, of one digit, in order. `digits` are those of the
/// keys that this thread has: of its warp's keys, one in each run of 32. Of the digit of this thread's number, gives
/// where its keys begin, and how many there are, which the tiles behind this one learn.
///
/// On a GPU keys are counted before, so that others learn it while they are ranked, and no key waits for the one before it:
/// of each digit the first lane takes places for all. On a CPU, where additions of many threads to one number are slow,
/// each lane counts those of its digit before it.
#[device_fn]
fn rank<const N: usize>(
    digits: &[u32; N],
    ranks: &mut [u32; N],
    counts: &mut [[u32; DIGITS]; WARPS],
    state: &mut [u32],
    tile: usize,
    counted: bool,
) -> (u32, u32) {
    let (thread, warp) = (thread_idx().x, warp_id() as usize);
    if target_is_gpu() {
        let own = counts_before(digits, counts);
        if !counted {
            publish_own(state, tile, thread, own);
        }
        let start = add_starts(own, counts);
        #[unroll]
        for i in 0..N {
            let alike = lanes_alike(digits[i]);
            let ahead = (alike & lanemask_lt()).count_ones();
            let mut first = 0;
            if ahead == 0 {
                let count = &mut counts[warp][digits[i] as usize];
                first = atomic_add_with(count, alike.count_ones(), Ordering::Relaxed, Scope::Block);
            }
            // Lanes go on when the first ones know where, so places of the next keys lie behind.
            ranks[i] = shuffle_idx(FULL_MASK, first, alike.trailing_zeros(), 32) + ahead;
        }
        (start, own)
    } else {
        for of_warp in 0..WARPS {
            counts[of_warp][thread] = 0;
        }
        barrier();
        for i in 0..N {
            let digit = digits[i] as usize;
            let alike = lanes_alike(digits[i]);
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
        let own = sum_up(counts);
        if !counted {
            publish_own(state, tile, thread, own);
        }
        let start = add_starts(own, counts);
        for i in 0..N {
            ranks[i] += counts[warp][digits[i] as usize];
        }
        (start, own)
    }
}

/// Says how many keys of a value a tile has. The first one says that of all up to its end alone.
#[device_fn]
fn publish_own(state: &mut [u32], tile: usize, digit: usize, own: u32) {
    if tile > 0 {
        let here = tile * DIGITS + digit;
        atomic_store(&mut state[here], own + 1, Ordering::Relaxed, Scope::Device);
    }
}

/// How many keys of a value the tiles before this one have, of which this has `own`; says how many there are up to its end.
/// What several tiles know is read at once: a thread that asks one after the other waits for memory each time, and tiles
/// further on wait for it.
#[device_fn]
fn keys_before(state: &mut [u32], tile: usize, digit: usize, own: u32) -> u32 {
    let (mut before, mut left) = (0u32, tile);
    while left > 0 {
        // What is read is all that is known, so that nothing else has to be seen with it.
        let (mut known, last) = ([NOTHING; WINDOW], left - 1);
        #[unroll]
        for i in 0..WINDOW {
            let at = if i < left { last - i } else { 0 };
            known[i] = atomic_load(
                &state[at * DIGITS + digit],
                Ordering::Relaxed,
                Scope::Device,
            );
        }
        // As far as something is known; from there on it is asked again. What the first tile says is of all, so nothing
        // before it is taken.
        let (mut is_known, mut has_all, mut taken) = (true, false, 0usize);
        if known[0] != NOTHING {
            #[unroll]
            for i in 0..WINDOW {
                is_known = is_known && known[i] != NOTHING;
                let is_all = known[i] >= ALL;
                before += if is_known {
                    known[i] - if is_all { ALL } else { 1 }
                } else {
                    0
                };
                taken += is_known as usize;
                has_all = has_all || is_known && is_all;
                is_known = is_known && !is_all;
            }
        }
        left = if has_all { 0 } else { left - taken };
    }
    atomic_store(
        &mut state[tile * DIGITS + digit],
        ALL + before + own,
        Ordering::Relaxed,
        Scope::Device,
    );
    before
}

/// The tile that a block takes, so that those before it have begun. The last place of `state` counts them.
#[device_fn]
fn next_tile(state: &mut [u32]) -> usize {
    let ticket = shared!([u32; 1]);
    let last = state.len() - 1;
    if thread_idx().x == 0 {
        ticket[0] = atomic_add(&mut state[last], 1);
    }
    barrier();
    ticket[0] as usize
}

/// Makes running sums of the counts of a digit's values, for each digit by a block.
#[kernel]
fn digit_starts(counts: &mut [u32]) {
    assume(block_dim().x == BLOCK as usize && block_dim().y == 1 && block_dim().z == 1);
    let at = block_idx().x * DIGITS + thread_idx().x;
    counts[at] = block_exclusive_scan(counts[at], 0, |a, b| a + b);
}

/// The functions for keys of a type, of which a thread has so many, which has so many digits, and of whose blocks so many are to
/// be on a multiprocessor at once.
macro_rules! radix {
    ($($key:ident $items:ident $places:literal $blocks:tt $count:ident $count_tile:ident $sweep:ident $sweep_pairs:ident $tiles:ident $keys:ident
        $pairs:ident;)*) => {$(
        /// Counts the values of the first `places` digits of all keys.
        #[device_fn]
        pub(super) fn $count<A: DeviceType, F: Fn(A) -> $key>(
            x: &[A],
            places: usize,
            counts: &mut [u32],
            to_key: F,
        ) {
            let (thread, here) = (thread_idx().x, shared!([u32; $places * DIGITS]));
            for place in 0..places {
                here[place * DIGITS + thread] = 0;
            }
            barrier();
            let mut tile = block_idx().x;
            while tile < x.len().div_ceil(COUNTED) {
                // Several are read before the first is counted.
                let first = tile * COUNTED + thread;
                let mut items = [x[tile * COUNTED]; OF_COUNTED];
                #[unroll]
                for i in 0..OF_COUNTED {
                    if first + i * (BLOCK as usize) < x.len() {
                        items[i] = x[first + i * BLOCK as usize];
                    }
                }
                let mut keys = [$key::MAX; OF_COUNTED];
                #[unroll]
                for i in 0..OF_COUNTED {
                    keys[i] = to_key(items[i]);
                }
                for place in 0..places {
                    #[unroll]
                    for i in 0..OF_COUNTED {
                        if first + i * (BLOCK as usize) < x.len() {
                            let digit = ((keys[i] >> (8 * place as u32)) & 255) as usize;
                            // Below it in any case; so it need not be asked.
                            let count = &mut here[(place * DIGITS + digit) % ($places * DIGITS)];
                            atomic_add_with(count, 1, Ordering::Relaxed, Scope::Block);
                        }
                    }
                }
                tile += grid_dim().x;
            }
            barrier();
            for place in 0..places {
                let at = place * DIGITS + thread;
                if here[at] > 0 {
                    atomic_add(&mut counts[at], here[at]);
                }
            }
        }

        /// Counts the values of a digit of a tile: those of 0 of all tiles, then those of 1, and so on.
        #[device_fn]
        pub(super) fn $count_tile<A: DeviceType, F: Fn(A) -> $key>(
            x: &[A],
            shift: u32,
            counts: &mut [u32],
            to_key: F,
        ) {
            let (thread, tile, tiles) = (thread_idx().x, block_idx().x, grid_dim().x);
            let here = shared!([u32; DIGITS]);
            here[thread] = 0;
            barrier();
            for i in 0..$items {
                let at = tile * (BLOCK as usize * $items) + i * BLOCK as usize + thread;
                if at < x.len() {
                    let count = &mut here[((to_key(x[at]) >> shift) & 255) as usize];
                    atomic_add_with(count, 1, Ordering::Relaxed, Scope::Block);
                }
            }
            barrier();
            counts[thread * tiles + tile] = here[thread];
        }

        /// Puts keys in the order of a digit. `starts` is where the keys of each value begin, digit by digit; if tiles
        /// are `counted`, where those of each value of each tile do, of this digit.
        #[device_fn]
        pub(super) fn $sweep<A: DeviceType, B: DeviceType, F: Fn(A) -> $key, G: Fn($key) -> B>(
            x: &[A],
            out: &mut [B],
            shift: u32,
            starts: &[u32],
            state: &mut [u32],
            counted: bool,
            to_key: F,
            of_key: G,
        ) {
            assume(block_dim().x == BLOCK as usize && block_dim().y == 1 && block_dim().z == 1);
            let thread = thread_idx().x;
            let tile = if counted { block_idx().x } else { next_tile(state) };
            let (counts, memory) = (shared!([[u32; DIGITS]; WARPS]), shared!([$key; BLOCK as usize * $items]));
            let first_of = shared!([u32; DIGITS]);
            let first = tile * (BLOCK as usize * $items) + warp_id() as usize * (32 * $items) + lane_id() as usize;
            let (mut mine, mut digits, mut ranks) =
                ([$key::MAX; $items], [0u32; $items], [0u32; $items]);
            #[unroll]
            for i in 0..$items {
                if first + 32 * i < x.len() {
                    mine[i] = to_key(x[first + 32 * i]);
                }
                digits[i] = ((mine[i] >> shift) & 255) as u32;
            }
            let (start, own) = rank(&digits, &mut ranks, counts, state, tile, counted);
            #[unroll]
            for i in 0..$items {
                memory[ranks[i] as usize] = mine[i];
            }
            // What is subtracted of a rank is added to where the digit's keys of the tile begin.
            let begin = if counted {
                starts[thread * grid_dim().x + tile]
            } else {
                starts[shift as usize / 8 * DIGITS + thread] + keys_before(state, tile, thread, own)
            };
            first_of[thread] = begin.wrapping_sub(start);
            barrier();
            let there = (x.len() - tile * (BLOCK as usize * $items)).min(BLOCK as usize * $items);
            if there == BLOCK as usize * $items {
                // All that is read is read before the first is written.
                let mut to = [0u32; $items];
                #[unroll]
                for i in 0..$items {
                    mine[i] = memory[i * BLOCK as usize + thread];
                }
                #[unroll]
                for i in 0..$items {
                    let at = (i * BLOCK as usize + thread) as u32;
                    to[i] = first_of[((mine[i] >> shift) & 255) as usize].wrapping_add(at);
                }
                #[unroll]
                for i in 0..$items {
                    out[to[i] as usize] = of_key(mine[i]);
                }
            } else {
                for i in 0..$items {
                    let at = i * BLOCK as usize + thread;
                    if at < there {
                        let key = memory[at];
                        let to = first_of[((key >> shift) & 255) as usize].wrapping_add(at as u32);
                        out[to as usize] = of_key(key);
                    }
                }
            }
        }

        /// Puts keys in the order of a digit, with a value beside each, which takes the same way: one of `values`, or,
        /// if they are `numbered`, the key's number. The keys of the last digit are not written.
        #[device_fn]
        pub(super) fn $sweep_pairs<A: DeviceType, F: Fn(A) -> $key>(
            x: &[A],
            values: &[u32],
            numbered: bool,
            out: &mut [$key],
            values_out: &mut [u32],
            is_last: bool,
            shift: u32,
            starts: &[u32],
            state: &mut [u32],
            counted: bool,
            to_key: F,
        ) {
            assume(block_dim().x == BLOCK as usize && block_dim().y == 1 && block_dim().z == 1);
            let thread = thread_idx().x;
            let tile = if counted { block_idx().x } else { next_tile(state) };
            let (counts, memory) = (shared!([[u32; DIGITS]; WARPS]), shared!([$key; BLOCK as usize * $items]));
            let first_of = shared!([u32; DIGITS]);
            let first = tile * (BLOCK as usize * $items) + warp_id() as usize * (32 * $items) + lane_id() as usize;
            let (mut mine, mut digits, mut ranks) =
                ([$key::MAX; $items], [0u32; $items], [0u32; $items]);
            let (mut beside, mut to) = ([0u32; $items], [0u32; $items]);
            #[unroll]
            for i in 0..$items {
                let at = first + 32 * i;
                if at < x.len() && at < values.len() {
                    mine[i] = to_key(x[at]);
                    beside[i] = if numbered { at as u32 } else { values[at] };
                }
                digits[i] = ((mine[i] >> shift) & 255) as u32;
            }
            let (start, own) = rank(&digits, &mut ranks, counts, state, tile, counted);
            #[unroll]
            for i in 0..$items {
                memory[ranks[i] as usize] = mine[i];
            }
            let begin = if counted {
                starts[thread * grid_dim().x + tile]
            } else {
                starts[shift as usize / 8 * DIGITS + thread] + keys_before(state, tile, thread, own)
            };
            first_of[thread] = begin.wrapping_sub(start);
            barrier();
            let there = (x.len() - tile * (BLOCK as usize * $items)).min(BLOCK as usize * $items);
            // All that is read is read before the first is written.
            if there == BLOCK as usize * $items {
                #[unroll]
                for i in 0..$items {
                    mine[i] = memory[i * BLOCK as usize + thread];
                }
                #[unroll]
                for i in 0..$items {
                    let at = (i * BLOCK as usize + thread) as u32;
                    to[i] = first_of[((mine[i] >> shift) & 255) as usize].wrapping_add(at);
                }
                if !is_last {
                    #[unroll]
                    for i in 0..$items {
                        out[to[i] as usize] = mine[i];
                    }
                }
            } else {
                #[unroll]
                for i in 0..$items {
                    let at = i * BLOCK as usize + thread;
                    if at < there {
                        let key = memory[at];
                        to[i] = first_of[((key >> shift) & 255) as usize].wrapping_add(at as u32);
                        if !is_last {
                            out[to[i] as usize] = key;
                        }
                    }
                }
            }
            barrier();
            #[unroll]
            for i in 0..$items {
                memory[ranks[i] as usize] = beside[i] as $key;
            }
            barrier();
            if there == BLOCK as usize * $items {
                #[unroll]
                for i in 0..$items {
                    mine[i] = memory[i * BLOCK as usize + thread];
                }
                #[unroll]
                for i in 0..$items {
                    values_out[to[i] as usize] = mine[i] as u32;
                }
            } else {
                #[unroll]
                for i in 0..$items {
                    let at = i * BLOCK as usize + thread;
                    if at < there {
                        values_out[to[i] as usize] = memory[at] as u32;
                    }
                }
            }
        }

        /// [`$count_tile`] of a digit that is not the first.
        #[kernel]
        fn $tiles(x: &[$key], shift: u32, counts: &mut [u32]) {
            $count_tile(x, shift, counts, |key| key);
        }

        /// [`$sweep`] of a digit that is neither the first nor the last.
        #[kernel(launch_bounds(256, $blocks))]
        fn $keys(
            x: &[$key],
            out: &mut [$key],
            shift: u32,
            starts: &[u32],
            state: &mut [u32],
            counted: bool,
        ) {
            $sweep(x, out, shift, starts, state, counted, |key| key, |key| key);
        }

        /// [`$sweep_pairs`] of a digit that is not the first.
        #[kernel]
        fn $pairs(
            x: &[$key],
            values: &[u32],
            numbered: bool,
            out: &mut [$key],
            values_out: &mut [u32],
            is_last: bool,
            shift: u32,
            starts: &[u32],
            state: &mut [u32],
            counted: bool,
        ) {
            $sweep_pairs(
                x, values, numbered, out, values_out, is_last, shift, starts, state, counted, |key| key,
            );
        }

        impl RadixKey for $key {
            const TILE: usize = BLOCK as usize * $items;
            fn count_tiles() -> Result<&'static Kernel> {
                $tiles.as_kernel()
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
radix! {
    u32 ITEMS_U32 4 3 count_u32 count_tile_u32 sweep_u32 sweep_pairs_u32 tiles_u32 keys_u32 pairs_u32;
    u64 ITEMS_U64 8 2 count_u64 count_tile_u64 sweep_u64 sweep_pairs_u64 tiles_u64 keys_u64 pairs_u64;
}

/// Where keys go in the pass of a digit.
struct Starts {
    /// Where the keys of each value begin, of each digit; or of this digit of each tile.
    starts: Arc<Buffer<u32>>,
    /// What tiles know of the keys of each value, and how many tiles are taken, if they learn of each other.
    state: Buffer<u32>,
    counted: bool,
}

/// A sort that is under way.
struct Sort<'a> {
    jit: &'a Jit,
    tiles: u32,
    /// Where the keys of each value of each digit begin, if tiles learn of each other.
    all: Option<Arc<Buffer<u32>>>,
}

impl<'a> Sort<'a> {
    /// Of so many bits of keys.
    fn new<T: SortElement>(jit: &'a Jit, x: &Part<T>, bits: u32) -> Result<Self> {
        let tiles = x.len().div_ceil(T::Key::TILE) as u32;
        let all = match is_gpu(jit) {
            true => Some(Arc::new(all_starts(jit, x, bits, tiles)?)),
            false => None,
        };
        Ok(Sort { jit, tiles, all })
    }

    /// Where keys go by the digit that begins at a bit. `count` counts those of tiles.
    fn starts<A: KernelType>(&self, count: &Kernel, x: &Part<A>, shift: u32) -> Result<Starts> {
        let (jit, len) = (self.jit, self.tiles as usize * DIGITS);
        if let Some(all) = &self.all {
            return Ok(Starts {
                starts: all.clone(),
                state: jit.zeros(len + 1)?,
                counted: false,
            });
        }
        let mut counts = jit.unspecified::<u32>(len)?;
        jit.launch(count, self.tiles, BLOCK, args!(x, shift, &mut counts))?;
        let starts = scan_all(jit, &ScanAll::sums::<u32>(jit)?, &counts, len, 0, true)?;
        Ok(Starts {
            starts: Arc::new(starts),
            state: jit.zeros(1)?,
            counted: true,
        })
    }

    /// Launches the pass of a digit.
    fn sweep<A: KernelType, B: KernelType>(
        &self,
        (kernel, count): (&Kernel, &Kernel),
        (from, to): (&Part<A>, &mut Part<B>),
        shift: u32,
    ) -> Result<()> {
        let Starts {
            starts,
            mut state,
            counted,
        } = self.starts(count, from, shift)?;
        let args = args!(from, to, shift, &*starts, &mut state, counted);
        self.jit.launch(kernel, self.tiles, BLOCK, args)
    }
}

/// Elements in order.
///
/// # Errors
/// No memory; a device that has failed.
pub(super) fn sort<T: SortElement>(jit: &Jit, x: &Part<T>) -> Result<Buffer<T>> {
    let mut out = jit.unspecified::<T>(x.len())?;
    if x.is_empty() {
        return Ok(out);
    }
    let (sort, of_keys) = (Sort::new(jit, x, T::BITS)?, T::Key::count_tiles()?);
    if T::BITS == 8 {
        sort.sweep((T::sort_at_once()?, T::count_tiles()?), (x, &mut out), 0)?;
        return Ok(out);
    }
    let mut keys = jit.unspecified::<T::Key>(x.len())?;
    sort.sweep((T::sort_first()?, T::count_tiles()?), (x, &mut keys), 0)?;
    let last = T::BITS - 8;
    if last > 8 {
        let mut other = jit.unspecified::<T::Key>(x.len())?;
        for shift in (8..last).step_by(8) {
            sort.sweep((T::Key::keys()?, of_keys), (&keys, &mut other), shift)?;
            std::mem::swap(&mut keys, &mut other);
        }
    }
    sort.sweep((T::sort_last()?, of_keys), (&keys, &mut out), last)?;
    Ok(out)
}

/// Numbers in the order of the elements beside them, by the last `bits` bits of their keys; alike ones stay as they
/// are. Without `values` they are the numbers of the elements.
///
/// # Errors
/// No memory; a device that has failed.
pub(super) fn sort_pairs<T: SortElement>(
    jit: &Jit,
    x: &Part<T>,
    values: Option<Buffer<u32>>,
    bits: u32,
) -> Result<Buffer<u32>> {
    let len = x.len();
    let mut numbered = values.is_none();
    let mut values = match values {
        Some(values) => values,
        None => jit.unspecified(len)?,
    };
    if len == 0 {
        return Ok(values);
    }
    let sort = Sort::new(jit, x, bits)?;
    let mut other_values = jit.unspecified::<u32>(len)?;
    // The keys of the last digit are not written.
    let written = if bits > 8 { len } else { 0 };
    let mut keys = jit.unspecified::<T::Key>(if bits > 16 { len } else { 0 })?;
    let mut other = jit.unspecified::<T::Key>(written)?;
    for shift in (0..bits).step_by(8) {
        let (kernel, starts, from) = match shift {
            0 => {
                let starts = sort.starts(T::count_tiles()?, x, shift)?;
                (T::sort_pairs()?, starts, x.into_arg())
            }
            _ => {
                let starts = sort.starts(T::Key::count_tiles()?, &keys, shift)?;
                (T::Key::pairs()?, starts, (&keys).into_arg())
            }
        };
        let mut state = starts.state;
        let args = [
            from,
            (&values).into_arg(),
            numbered.into_arg(),
            (&mut other).into_arg(),
            (&mut other_values).into_arg(),
            (shift + 8 >= bits).into_arg(),
            shift.into_arg(),
            (&*starts.starts).into_arg(),
            (&mut state).into_arg(),
            starts.counted.into_arg(),
        ];
        jit.launch(kernel, sort.tiles, BLOCK, &args)?;
        drop(args);
        numbered = false;
        std::mem::swap(&mut keys, &mut other);
        std::mem::swap(&mut values, &mut other_values);
    }
    Ok(values)
}

/// Where the keys of each value of each of the first digits begin.
fn all_starts<T: SortElement>(
    jit: &Jit,
    x: &Part<T>,
    bits: u32,
    tiles: u32,
) -> Result<Buffer<u32>> {
    let places = bits.div_ceil(8);
    let mut counts = jit.zeros::<u32>(places as usize * DIGITS)?;
    let most = jit.device().info().multiprocessors.max(1) * COUNTING;
    let args = [x.into_arg(), places.into_arg(), (&mut counts).into_arg()];
    jit.launch(T::count_digits()?, tiles.min(most), BLOCK, &args)?;
    drop(args);
    jit.launch(&digit_starts, places, BLOCK, args!(&mut counts))?;
    Ok(counts)
}
