//! Running sums of one row in one pass, whose tiles look back (`scan/look_back.rs`).
//!
//! Each warp has elements next to each other, and of each 128 of them a lane has four: loads and stores are wide and
//! beside those of the lanes around, and running sums go from lane to lane by shuffles, so that no element is handed
//! over in shared memory.

use kiln_device_stdlib::plain::assumption::assume;
use kiln_device_stdlib::plain::index::{block_dim, thread_idx};
use kiln_device_stdlib::plain::memory::{barrier, thread_fence_block};
use kiln_device_stdlib::plain::number::Num;
use kiln_device_stdlib::plain::warp::{lane_id, shuffle_idx, shuffle_up};
use kiln_device_stdlib::warp::FULL_MASK;
use kiln_jit_core::args::IntoArg;
use kiln_jit_core::build::Kernel;
use kiln_jit_core::error::Result;
use kiln_jit_core::front::AsKernel;
use kiln_jit_core::jit::Jit;
use kiln_jit_core::runtime::Buffer;
use kiln_jit_core::value::KernelType;
use kiln_kernel_macro::{device_fn, kernel};

use super::look_back::{
    BLOCK, WARPS, before_tile, nothing_said, publish_all, publish_own, scan_lanes, tile_by_ticket,
};

/// Elements next to each other that a thread has: of 32 bits as many as one access has.
pub(super) const WIDE: usize = 4;

/// Runs of a warp, of which each thread has its elements: of elements of at most 32 bits, and of larger ones, of which
/// a thread then has as many bytes. While a tile looks back its multiprocessor has nothing else to do, so the larger ones
/// are the better ones, as far as there are registers.
const RUNS: usize = 8;
const LONG_RUNS: usize = 4;

/// Elements of a thread, of so many runs.
const ITEMS: usize = WIDE * RUNS;
const LONG_ITEMS: usize = WIDE * LONG_RUNS;

/// Elements of a run.
pub(super) const RUN: usize = 32 * WIDE;

/// Reads the elements that a thread has of a tile, of which its first is there or would be; beyond the end there is nothing.
#[device_fn]
fn load<T: Num, const N: usize>(
    items: &mut [T; N],
    x: &[T],
    first: usize,
    is_whole: bool,
    none: T,
) {
    if is_whole {
        #[unroll]
        for run in 0..N / WIDE {
            let at = first + run * RUN;
            #[unroll]
            for i in 0..WIDE {
                items[run * WIDE + i] = x[at + i];
            }
        }
    } else {
        #[unroll]
        for i in 0..N {
            let at = first + i / WIDE * RUN + i % WIDE;
            items[i] = none;
            if at < x.len() {
                items[i] = x[at];
            }
        }
    }
}

/// Writes what a thread has of a tile, as far as there are elements.
#[device_fn]
fn store<T: Num, const N: usize>(items: [T; N], out: &mut [T], first: usize, is_whole: bool) {
    if is_whole {
        #[unroll]
        for run in 0..N / WIDE {
            let at = first + run * RUN;
            #[unroll]
            for i in 0..WIDE {
                out[at + i] = items[run * WIDE + i];
            }
        }
    } else {
        #[unroll]
        for i in 0..N {
            let at = first + i / WIDE * RUN + i % WIDE;
            if at < out.len() {
                out[at] = items[i];
            }
        }
        // Without anything behind it LLVM makes one store of the last ones of both ways, which a wide one has no more.
        thread_fence_block();
    }
}

/// Makes of the elements of a thread their running sums along each of its runs, from the thread's first. Leaves what is
/// before these in the warp, and gives what the warp has in all.
#[device_fn]
fn scan_warp<T: Num, F: Fn(T, T) -> T, const R: usize, const N: usize>(
    items: &mut [T; N],
    before: &mut [T; R],
    none: T,
    op: F,
) -> T {
    let mut of_warp = none;
    #[unroll]
    for run in 0..R {
        #[unroll]
        for i in 1..WIDE {
            items[run * WIDE + i] = op(items[run * WIDE + i - 1], items[run * WIDE + i]);
        }
        let up_to = scan_lanes(items[run * WIDE + WIDE - 1], |a, b| op(a, b));
        let earlier = shuffle_up(FULL_MASK, up_to, 1, 32);
        before[run] = if lane_id() == 0 {
            of_warp
        } else {
            op(of_warp, earlier)
        };
        of_warp = op(of_warp, shuffle_idx(FULL_MASK, up_to, 31, 32));
    }
    of_warp
}

/// What the warps before this one come to, with what the tiles before do. All threads of the block come here; `of_warp`
/// is what each warp has.
#[device_fn]
fn before_warp<T: Num, F: Fn(T, T) -> T>(
    tile: usize,
    of_warp: T,
    none: T,
    state: &mut [u64],
    op: F,
) -> T {
    let (sums, before) = (shared!([T; WARPS]), shared!([T; 1]));
    let warp = thread_idx().x / 32;
    if lane_id() == 0 {
        sums[warp] = of_warp;
    }
    barrier();
    let (mut earlier, mut own) = (none, none);
    #[unroll]
    for i in 0..WARPS {
        if i == warp {
            earlier = own;
        }
        own = op(own, sums[i]);
    }
    if warp == 0 {
        if tile > 0 {
            publish_own(tile, own, state);
        }
        let of_tiles = before_tile(tile, none, state, |a, b| op(a, b));
        publish_all(tile, op(of_tiles, own), state);
        if lane_id() == 0 {
            before[0] = of_tiles;
        }
    }
    barrier();
    op(before[0], earlier)
}

/// A tile of running sums, of the elements up to each or, exclusive, of those before it.
#[device_fn]
fn scan_tile<T: Num, F: Fn(T, T) -> T, const R: usize, const N: usize>(
    x: &[T],
    out: &mut [T],
    exclusive: bool,
    none: T,
    state: &mut [u64],
    op: F,
) {
    assume(block_dim().x == BLOCK as usize && block_dim().y == 1 && block_dim().z == 1);
    let tile = tile_by_ticket(state);
    let (warp, lane) = (thread_idx().x / 32, thread_idx().x % 32);
    let first = (tile * WARPS + warp) * (R * RUN) + lane * WIDE;
    let last = first + (R - 1) * RUN + (WIDE - 1);
    // Of an index below 2^31 LLVM knows that those behind it lie so far from it, also the one that is asked about, and makes
    // one access of four; beyond, they stay apart.
    let is_whole = first < 1 << 31 && last < x.len() && last < out.len();
    let (mut items, mut of_runs) = ([T::ZERO; N], [T::ZERO; R]);
    load(&mut items, x, first, is_whole, none);
    let of_warp = scan_warp(&mut items, &mut of_runs, none, |a, b| op(a, b));
    let before = before_warp(tile, of_warp, none, state, |a, b| op(a, b));
    #[unroll]
    for run in 0..R {
        let start = op(before, of_runs[run]);
        let mut last = start;
        #[unroll]
        for i in 0..WIDE {
            let up_to = op(start, items[run * WIDE + i]);
            items[run * WIDE + i] = if exclusive { last } else { up_to };
            last = up_to;
        }
    }
    store(items, out, first, is_whole);
}

/// The kernels of elements of at most 32 bits and of larger ones, each with what it combines by.
macro_rules! kernels {
    ($($(#[$doc:meta])* $name:ident $long:ident = |$a:ident, $b:ident| $op:expr;)*) => {$(
        $(#[$doc])*
        #[kernel(launch_bounds(256, 4))]
        pub(crate) fn $name<T: Num>(
            x: &[T],
            out: &mut [T],
            exclusive: bool,
            none: T,
            state: &mut [u64],
        ) {
            scan_tile::<T, _, RUNS, ITEMS>(x, out, exclusive, none, state, |$a, $b| $op);
        }

        $(#[$doc])*
        #[kernel]
        fn $long<T: Num>(x: &[T], out: &mut [T], exclusive: bool, none: T, state: &mut [u64]) {
            scan_tile::<T, _, LONG_RUNS, LONG_ITEMS>(x, out, exclusive, none, state, |$a, $b| $op);
        }
    )*};
}
kernels! {
    /// Running sums.
    scan_all_sums scan_all_long_sums = |a, b| a + b;
    /// Running products.
    scan_all_products scan_all_long_products = |a, b| a * b;
}

/// What running folds of a whole buffer are of, and by.
pub(crate) struct ScanAll {
    kernel: &'static Kernel,
    /// Elements of a tile.
    tile: usize,
}

impl ScanAll {
    /// By the one of two kernels that is for elements of this size.
    fn of<T>([short, long]: [&'static dyn AsKernel; 2]) -> Result<ScanAll> {
        let (kernel, runs) = match size_of::<T>() > 4 {
            true => (long, LONG_RUNS),
            false => (short, RUNS),
        };
        let (kernel, tile) = (kernel.as_kernel()?, WARPS * runs * RUN);
        Ok(ScanAll { kernel, tile })
    }

    /// Running sums.
    ///
    /// # Errors
    /// The kernel is refused.
    pub(crate) fn sums<T>() -> Result<ScanAll> {
        ScanAll::of::<T>([&scan_all_sums, &scan_all_long_sums])
    }

    /// Running products.
    ///
    /// # Errors
    /// The kernel is refused.
    pub(crate) fn products<T>() -> Result<ScanAll> {
        ScanAll::of::<T>([&scan_all_products, &scan_all_long_products])
    }
}

/// Running folds of a whole buffer, of the elements up to each or, `exclusive`, of those before it, of
/// which the first has `none`: what changes nothing where it is added.
///
/// # Errors
/// No memory; a device that has failed.
pub(crate) fn scan_all<'a, T: KernelType>(
    jit: &Jit,
    scan: &ScanAll,
    x: impl IntoArg<'a>,
    len: usize,
    none: T,
    exclusive: bool,
) -> Result<Buffer<T>> {
    let tiles = len.div_ceil(scan.tile);
    let mut out = jit.unspecified::<T>(len)?;
    if tiles == 0 {
        return Ok(out);
    }
    let mut state = nothing_said::<T>(jit, tiles)?;
    let args = [
        x.into_arg(),
        (&mut out).into_arg(),
        exclusive.into_arg(),
        none.into_arg(),
        (&mut state).into_arg(),
    ];
    jit.launch(scan.kernel, tiles as u32, BLOCK, &args)?;
    drop(args);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiln_jit_core::runtime::Device;

    kernels! {
        /// The last number that is not 0: what does not commute.
        lasts long_lasts = |a, b| if b == T::ZERO { a } else { b };
    }

    fn number(i: usize) -> u32 {
        (i as u32).wrapping_mul(2_654_435_761) >> 20
    }

    /// Compares running folds of so many numbers with the host's.
    fn compare<T: KernelType + PartialEq + std::fmt::Debug>(
        scan: Result<ScanAll>,
        n: usize,
        (none, number): (T, impl Fn(usize) -> T),
        op: impl Fn(T, T) -> T,
    ) {
        let (jit, scan) = (Jit::on(Device::cpu()), scan.expect("they are kernels"));
        let x: Vec<T> = (0..n).map(number).collect();
        let buffer = jit.upload(&x).expect("there is memory");
        for exclusive in [false, true] {
            let sums = scan_all(&jit, &scan, &buffer, n, none, exclusive).expect("it runs");
            let mut sum = none;
            let each = |x: &T| {
                let before = sum;
                sum = op(sum, *x);
                if exclusive { before } else { sum }
            };
            let expected: Vec<T> = x.iter().map(each).collect();
            let sums = sums.to_vec().expect("it ran");
            let other = (0..n).find(|i| sums[*i] != expected[*i]);
            let differ = other.map(|i| (i, sums[i], expected[i]));
            assert_eq!(differ, None, "{n} {exclusive}");
        }
    }

    #[test]
    fn running_sums_of_all_lengths() {
        // Of more tiles than a warp looks back at, the last ones.
        for n in [
            0, 1, 31, 127, 128, 511, 4096, 8191, 8192, 8193, 40_000, 300_001,
        ] {
            compare(ScanAll::sums::<u32>(), n, (0, number), u32::wrapping_add);
        }
    }

    #[test]
    fn running_sums_of_each_type() {
        let signed = |i: usize| i64::from(number(i)) * [1 << 40, -3][i % 2];
        for n in [8193, 170_000] {
            compare(
                ScanAll::sums::<i8>(),
                n,
                (0, |i| signed(i) as i8),
                i8::wrapping_add,
            );
            compare(
                ScanAll::sums::<u16>(),
                n,
                (0, |i| signed(i) as u16),
                u16::wrapping_add,
            );
            compare(
                ScanAll::sums::<i32>(),
                n,
                (0, |i| signed(i) as i32),
                i32::wrapping_add,
            );
            compare(ScanAll::sums::<i64>(), n, (0, signed), i64::wrapping_add);
            compare(
                ScanAll::sums::<u64>(),
                n,
                (0, |i| signed(i) as u64),
                u64::wrapping_add,
            );
            // Sums that are exact.
            compare(
                ScanAll::sums::<f32>(),
                n,
                (0.0, |i| (i % 7) as f32 - 3.0),
                |a, b| a + b,
            );
            let exact = |i: usize| (i % 7) as f64 * 33_554_433.0 - 5.0;
            compare(ScanAll::sums::<f64>(), n, (0.0, exact), |a, b| a + b);
        }
    }

    #[test]
    fn what_does_not_commute_stays_in_order() {
        let last = |a, b| if b == 0 { a } else { b };
        for (n, every) in [(9000, 7), (9000, 5000), (170_000, 50_000)] {
            let number = |i: usize| (i % every == 3) as u64 * (i as u64 + (1 << 33));
            compare(
                ScanAll::of::<u64>([&lasts, &long_lasts]),
                n,
                (0, number),
                last,
            );
            let short = |i: usize| number(i) as u32;
            let last = |a, b| if b == 0 { a } else { b };
            compare(
                ScanAll::of::<u32>([&lasts, &long_lasts]),
                n,
                (0, short),
                last,
            );
        }
    }
}
