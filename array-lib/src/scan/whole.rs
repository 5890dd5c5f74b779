//! Running sums of one row in one pass, whose tiles look back (`scan/look_back.rs`).
//!
//! Each warp has elements next to each other, and of each 128 of them a lane has four: loads and stores are wide and
//! beside those of the lanes around, and running sums go from lane to lane by shuffles. While a tile looks back its
//! multiprocessor has nothing else to do, so on a GPU a tile is as large as there is room for: a third of it waits in
//! registers, the rest in shared memory, where each thread finds its own again. On a CPU all is memory, and nothing is
//! copied to more of it.

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

use crate::fused::is_gpu;

use super::look_back::{
    BLOCK, WARPS, before_tile, nothing_said, publish_all, publish_own, scan_lanes, tile_by_ticket,
};

/// Elements next to each other that a thread has: of 32 bits as many as one access has.
pub(super) const WIDE: usize = 4;

/// Elements that a thread has at a time: of at most 32 bits, and larger ones, of which it then has almost as many bytes.
/// Four blocks of 256 threads are on a multiprocessor with 64 registers each; more of them, or more elements in
/// registers, take longer.
const ITEMS: usize = 20;
const LONG_ITEMS: usize = 8;

/// How many times a thread has so many elements. All but the last wait in shared memory, of which a kernel has 48 KiB.
const BATCHES: usize = 3;

/// The elements that wait in shared memory.
const WAITING: usize = (BATCHES - 1) * ITEMS * BLOCK as usize;
const LONG_WAITING: usize = (BATCHES - 1) * LONG_ITEMS * BLOCK as usize;

/// Elements that a thread of a CPU has, once.
const CPU_ITEMS: usize = 32;

/// Elements of a run.
pub(super) const RUN: usize = 32 * WIDE;

/// How far the last of a thread's elements at a time lies behind its first, and one more.
#[device_fn]
fn reach<const N: usize>() -> usize {
    (N / WIDE - 1) * RUN + WIDE
}

/// Reads the elements that a thread has at a time, of which the first is there or would be; beyond the end there is nothing.
#[device_fn]
fn load<T: Num, const N: usize>(items: &mut [T; N], x: &[T], first: usize, none: T) {
    // Below 2^31 LLVM knows that what lies behind does so, and makes one access of four.
    if first < 1 << 31 && first + reach::<N>() <= x.len() {
        let part = &x[first..first + reach::<N>()];
        #[unroll]
        for i in 0..N {
            items[i] = part[i / WIDE * RUN + i % WIDE];
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

/// Writes what a thread has at a time, as far as there are elements.
#[device_fn]
fn store<T: Num, const N: usize>(items: [T; N], out: &mut [T], first: usize) {
    if first < 1 << 31 && first + reach::<N>() <= out.len() {
        let part = &mut out[first..first + reach::<N>()];
        #[unroll]
        for i in 0..N {
            part[i / WIDE * RUN + i % WIDE] = items[i];
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

/// Makes of the elements of a thread the running sums of its warp, of those up to each or, exclusive, of those before
/// it. What the warp has had before is in `before`, which then has these, too. A run is done before the next begins, so
/// that nothing is kept but elements.
#[device_fn]
fn scan_warp<T: Num, F: Fn(T, T) -> T, const N: usize>(
    items: &mut [T; N],
    before: &mut T,
    exclusive: bool,
    op: F,
) {
    #[unroll]
    for run in 0..N / WIDE {
        #[unroll]
        for i in 1..WIDE {
            items[run * WIDE + i] = op(items[run * WIDE + i - 1], items[run * WIDE + i]);
        }
        let up_to = scan_lanes(items[run * WIDE + WIDE - 1], |a, b| op(a, b));
        let earlier = shuffle_up(FULL_MASK, up_to, 1, 32);
        let start = if lane_id() == 0 {
            *before
        } else {
            op(*before, earlier)
        };
        let mut last = start;
        #[unroll]
        for i in 0..WIDE {
            let sum = op(start, items[run * WIDE + i]);
            items[run * WIDE + i] = if exclusive { last } else { sum };
            last = sum;
        }
        *before = op(*before, shuffle_idx(FULL_MASK, up_to, 31, 32));
    }
}

/// Where in shared memory a thread's element of a batch waits: those of one access beside each other, those of threads
/// beside each other, too.
#[device_fn]
fn waiting_place<const N: usize, const BATCH: usize>(item: usize) -> usize {
    let run = BATCH * (N / WIDE) + item / WIDE;
    (run * BLOCK as usize + thread_idx().x) * WIDE + item % WIDE
}

/// The running sums of a batch within the warp, which then wait.
#[device_fn]
fn scan_batch<T: Num, F: Fn(T, T) -> T, const N: usize, const BATCH: usize>(
    (x, first): (&[T], usize),
    waiting: &mut [T],
    before: &mut T,
    (none, exclusive): (T, bool),
    op: F,
) {
    let mut items = [T::ZERO; N];
    load(&mut items, x, first + BATCH * (N * 32), none);
    scan_warp(&mut items, before, exclusive, |a, b| op(a, b));
    #[unroll]
    for i in 0..N {
        waiting[waiting_place::<N, BATCH>(i)] = items[i];
    }
}

/// Writes the running sums of a batch that has waited, with what is before the warp.
#[device_fn]
fn store_batch<T: Num, F: Fn(T, T) -> T, const N: usize, const BATCH: usize>(
    (out, first): (&mut [T], usize),
    waiting: &[T],
    before: T,
    op: F,
) {
    let mut items = [T::ZERO; N];
    #[unroll]
    for i in 0..N {
        items[i] = op(before, waiting[waiting_place::<N, BATCH>(i)]);
    }
    store(items, out, first + BATCH * (N * 32));
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
fn scan_tile<
    T: Num,
    F: Fn(T, T) -> T,
    const N: usize,
    const BATCHES: usize,
    const WAITING: usize,
>(
    (x, out): (&[T], &mut [T]),
    (none, exclusive): (T, bool),
    state: &mut [u64],
    op: F,
) {
    assume(block_dim().x == BLOCK as usize && block_dim().y == 1 && block_dim().z == 1);
    let waiting = shared!([T; WAITING]);
    let tile = tile_by_ticket(state);
    let (warp, lane) = (thread_idx().x / 32, thread_idx().x % 32);
    let first = (tile * WARPS + warp) * (BATCHES * N * 32) + lane * WIDE;
    let how = (none, exclusive);
    let mut of_warp = none;
    if BATCHES > 1 {
        scan_batch::<_, _, N, 0>((x, first), &mut waiting[..], &mut of_warp, how, |a, b| {
            op(a, b)
        });
        scan_batch::<_, _, N, 1>((x, first), &mut waiting[..], &mut of_warp, how, |a, b| {
            op(a, b)
        });
    }
    let mut items = [T::ZERO; N];
    load(&mut items, x, first + (BATCHES - 1) * (N * 32), none);
    scan_warp(&mut items, &mut of_warp, exclusive, |a, b| op(a, b));
    let before = before_warp(tile, of_warp, none, state, |a, b| op(a, b));
    #[unroll]
    for i in 0..N {
        items[i] = op(before, items[i]);
    }
    store(items, out, first + (BATCHES - 1) * (N * 32));
    if BATCHES > 1 {
        store_batch::<_, _, N, 0>((&mut *out, first), &waiting[..], before, |a, b| op(a, b));
        store_batch::<_, _, N, 1>((&mut *out, first), &waiting[..], before, |a, b| op(a, b));
    }
}

/// The kernels of elements of at most 32 bits and of larger ones, and for a CPU, each with what it combines by.
macro_rules! kernels {
    ($($(#[$doc:meta])* $name:ident $long:ident $on_cpu:ident = |$a:ident, $b:ident| $op:expr;)*) => {$(
        $(#[$doc])*
        #[kernel(launch_bounds(256, 4))]
        pub(crate) fn $name<T: Num>(
            x: &[T],
            out: &mut [T],
            exclusive: bool,
            none: T,
            state: &mut [u64],
        ) {
            scan_tile::<T, _, ITEMS, BATCHES, WAITING>((x, out), (none, exclusive), state, |$a, $b| $op);
        }

        $(#[$doc])*
        #[kernel(launch_bounds(256, 4))]
        fn $long<T: Num>(x: &[T], out: &mut [T], exclusive: bool, none: T, state: &mut [u64]) {
            let how = (none, exclusive);
            scan_tile::<T, _, LONG_ITEMS, BATCHES, LONG_WAITING>((x, out), how, state, |$a, $b| $op);
        }

        $(#[$doc])*
        #[kernel]
        fn $on_cpu<T: Num>(x: &[T], out: &mut [T], exclusive: bool, none: T, state: &mut [u64]) {
            let how = (none, exclusive);
            scan_tile::<T, _, CPU_ITEMS, 1, 1>((x, out), how, state, |$a, $b| $op);
        }
    )*};
}
kernels! {
    /// Running sums.
    scan_all_sums scan_all_long_sums scan_all_sums_on_cpu = |a, b| a + b;
    /// Running products.
    scan_all_products scan_all_long_products scan_all_products_on_cpu = |a, b| a * b;
}

/// What running folds of a whole buffer are of, and by.
pub(crate) struct ScanAll {
    kernel: &'static Kernel,
    /// Elements of a tile.
    tile: usize,
}

impl ScanAll {
    /// By a kernel of which a thread has so many elements.
    fn by(kernel: &'static dyn AsKernel, of_thread: usize) -> Result<ScanAll> {
        let (kernel, tile) = (kernel.as_kernel()?, of_thread * BLOCK as usize);
        Ok(ScanAll { kernel, tile })
    }

    /// By the one of three kernels that is for elements of this size on a GPU, or for a CPU.
    fn of<T>(is_gpu: bool, [short, long, on_cpu]: [&'static dyn AsKernel; 3]) -> Result<ScanAll> {
        match (is_gpu, size_of::<T>() > 4) {
            (true, false) => ScanAll::by(short, BATCHES * ITEMS),
            (true, true) => ScanAll::by(long, BATCHES * LONG_ITEMS),
            (false, _) => ScanAll::by(on_cpu, CPU_ITEMS),
        }
    }

    /// Running sums.
    ///
    /// # Errors
    /// The kernel is refused.
    pub(crate) fn sums<T>(jit: &Jit) -> Result<ScanAll> {
        let on_cpu = &scan_all_sums_on_cpu;
        ScanAll::of::<T>(is_gpu(jit), [&scan_all_sums, &scan_all_long_sums, on_cpu])
    }

    /// Running products.
    ///
    /// # Errors
    /// The kernel is refused.
    pub(crate) fn products<T>(jit: &Jit) -> Result<ScanAll> {
        let on_cpu = &scan_all_products_on_cpu;
        ScanAll::of::<T>(
            is_gpu(jit),
            [&scan_all_products, &scan_all_long_products, on_cpu],
        )
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
        lasts long_lasts lasts_on_cpu = |a, b| if b == T::ZERO { a } else { b };
    }

    const SUMS: [&dyn AsKernel; 3] = [&scan_all_sums, &scan_all_long_sums, &scan_all_sums_on_cpu];
    const LASTS: [&dyn AsKernel; 3] = [&lasts, &long_lasts, &lasts_on_cpu];

    fn number(i: usize) -> u32 {
        (i as u32).wrapping_mul(2_654_435_761) >> 20
    }

    /// Compares running folds of so many numbers with the host's.
    fn compare<T: KernelType + PartialEq + std::fmt::Debug>(
        kernels: [&'static dyn AsKernel; 3],
        n: usize,
        (none, number): (T, impl Fn(usize) -> T),
        op: impl Fn(T, T) -> T,
    ) {
        let jit = Jit::on(Device::cpu());
        let x: Vec<T> = (0..n).map(number).collect();
        let buffer = jit.upload(&x).expect("there is memory");
        for (is_gpu, exclusive) in [(false, false), (false, true), (true, false), (true, true)] {
            let scan = ScanAll::of::<T>(is_gpu, kernels).expect("they are kernels");
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
            assert_eq!(differ, None, "{n} {is_gpu} {exclusive}");
        }
    }

    #[test]
    fn running_sums_of_all_lengths() {
        // Of more tiles than a warp looks back at, the last ones.
        for n in [
            0, 1, 31, 127, 128, 511, 5119, 5120, 5121, 15_359, 15_360, 15_361, 40_000, 540_001,
        ] {
            compare(SUMS, n, (0, number), u32::wrapping_add);
        }
    }

    #[test]
    fn running_sums_of_each_type() {
        let signed = |i: usize| i64::from(number(i)) * [1 << 40, -3][i % 2];
        for n in [8193, 170_000] {
            compare(SUMS, n, (0, |i| signed(i) as i8), i8::wrapping_add);
            compare(SUMS, n, (0, |i| signed(i) as u16), u16::wrapping_add);
            compare(SUMS, n, (0, |i| signed(i) as i32), i32::wrapping_add);
            compare(SUMS, n, (0, signed), i64::wrapping_add);
            compare(SUMS, n, (0, |i| signed(i) as u64), u64::wrapping_add);
            // Sums that are exact.
            compare(SUMS, n, (0.0, |i| (i % 7) as f32 - 3.0), |a, b| a + b);
            let exact = |i: usize| (i % 7) as f64 * 33_554_433.0 - 5.0;
            compare(SUMS, n, (0.0, exact), |a, b| a + b);
        }
    }

    #[test]
    fn what_does_not_commute_stays_in_order() {
        let last = |a, b| if b == 0 { a } else { b };
        for (n, every) in [(9000, 7), (9000, 5000), (170_000, 50_000)] {
            let number = |i: usize| (i % every == 3) as u64 * (i as u64 + (1 << 33));
            compare(LASTS, n, (0, number), last);
            let short = |i: usize| number(i) as u32;
            let last = |a, b| if b == 0 { a } else { b };
            compare(LASTS, n, (0, short), last);
        }
    }
}
