//! Running sums in one pass: each block takes the next tile of elements, sums it up, and looks back at what the tiles
//! before have left, their sums or the sum of all up to them, until it has all of it (D. Merrill, M. Garland:
//! "Single-pass Parallel Prefix Scan with Decoupled Look-back", NVIDIA 2016).
//!
//! Blocks take tiles by a ticket, so that whoever is waited for has begun, whatever order blocks run in.

use kiln_device_stdlib::group::{block_exclusive_scan, block_to_blocked, block_to_striped};
use kiln_device_stdlib::plain::assumption::assume;
use kiln_device_stdlib::plain::atomic::{atomic_add, atomic_load, atomic_store};
use kiln_device_stdlib::plain::index::{block_dim, thread_idx};
use kiln_device_stdlib::plain::memory::barrier;
use kiln_device_stdlib::plain::number::Num;
use kiln_device_stdlib::plain::ordering::Ordering;
use kiln_device_stdlib::plain::warp::{ballot, lane_id, shuffle_down, shuffle_idx};
use kiln_device_stdlib::warp::FULL_MASK;
use kiln_jit_core::args::IntoArg;
use kiln_jit_core::build::Kernel;
use kiln_jit_core::error::Result;
use kiln_jit_core::ir::Scope;
use kiln_jit_core::jit::Jit;
use kiln_jit_core::runtime::Buffer;
use kiln_jit_core::value::KernelType;
use kiln_kernel_macro::{device_fn, kernel};

/// Threads of a block.
pub(super) const BLOCK: u32 = 256;

/// Elements of a thread; odd, so that threads that have theirs next to each other are at different banks of shared
/// memory.
pub(super) const ITEMS: usize = 15;

/// Elements of a tile.
pub(super) const TILE: usize = BLOCK as usize * ITEMS;

/// What is known of a tile: nothing, its own sum, the sum of all elements up to its end.
const NOTHING: u32 = 0;
const OWN: u32 = 1;
const ALL: u32 = 2;

/// Says what a tile alone comes to, by the first thread of a block.
#[device_fn]
pub(super) fn publish_own<T: Num>(tile: usize, own: T, state: &mut [u32], sums: &mut [T]) {
    if lane_id() == 0 {
        sums[tile] = own;
        atomic_store(&mut state[1 + tile], OWN, Ordering::Release, Scope::Device);
    }
}

/// Says what all tiles up to the end of this one come to, by the first thread of a block.
#[device_fn]
pub(super) fn publish_all<T: Num>(tile: usize, all: T, state: &mut [u32], totals: &mut [T]) {
    if lane_id() == 0 {
        totals[tile] = all;
        atomic_store(&mut state[1 + tile], ALL, Ordering::Release, Scope::Device);
    }
}

/// What the tiles before this one come to, for the first warp of a block.
///
/// `state` has a flag for each tile, which is written behind its sum in `sums`, of this tile alone, or in `totals`, of all
/// up to its end.
#[device_fn]
pub(super) fn before_tile<T: Num, F: Fn(T, T) -> T>(
    tile: usize,
    none: T,
    state: &mut [u32],
    sums: &[T],
    totals: &[T],
    op: F,
) -> T {
    let lane = lane_id() as usize;
    let (mut before, mut end) = (none, tile);
    while end > 0 {
        // Lane 0 has the last of these tiles; what would lie before the first is nothing.
        let is_there = lane < end;
        let at = if is_there { end - 1 - lane } else { 0 };
        let mut flag = ALL;
        if is_there {
            flag = atomic_load(&state[1 + at], Ordering::Acquire, Scope::Device);
            while flag == NOTHING {
                flag = atomic_load(&state[1 + at], Ordering::Acquire, Scope::Device);
            }
        }
        let done = ballot(FULL_MASK, flag == ALL);
        let last = done.trailing_zeros();
        let mut sum = none;
        if is_there && lane as u32 <= last {
            sum = if flag == ALL { totals[at] } else { sums[at] };
        }
        for delta in [1, 2, 4, 8, 16] {
            let earlier = shuffle_down(FULL_MASK, sum, delta, 32);
            if lane as u32 + delta < 32 {
                sum = op(earlier, sum);
            }
        }
        before = op(shuffle_idx(FULL_MASK, sum, 0, 32), before);
        end = if last < 32 { 0 } else { end - 32 };
    }
    before
}

/// What the tiles before this one come to, for the first warp of a block, which says what this one does: `own`.
#[device_fn]
pub(super) fn look_back<T: Num, F: Fn(T, T) -> T>(
    tile: usize,
    own: T,
    none: T,
    state: &mut [u32],
    sums: &mut [T],
    totals: &mut [T],
    op: F,
) -> T {
    if tile > 0 {
        publish_own(tile, own, state, sums);
    }
    let before = before_tile(tile, none, state, sums, totals, |a, b| op(a, b));
    publish_all(tile, op(before, own), state, totals);
    before
}

/// The next tile of those that no block has, for all threads of a block.
#[device_fn]
pub(super) fn tile_by_ticket(state: &mut [u32]) -> usize {
    let ticket = shared!([u32; 1]);
    if thread_idx().x == 0 {
        ticket[0] = atomic_add(&mut state[0], 1);
    }
    barrier();
    ticket[0] as usize
}

/// The elements that a thread has of a tile that begins here, next to each other; beyond the end there is nothing.
#[device_fn]
pub(super) fn loaded<T: Num>(x: &[T], start: usize, none: T, memory: &mut [T; TILE]) -> [T; ITEMS] {
    let mut items = [none; ITEMS];
    #[unroll]
    for i in 0..ITEMS {
        let at = start + i * BLOCK as usize + thread_idx().x;
        if at < x.len() {
            items[i] = x[at];
        }
    }
    block_to_blocked(items, memory)
}

/// Writes what a thread has of a tile, as far as there are elements.
#[device_fn]
pub(super) fn store<T: Num>(
    items: [T; ITEMS],
    out: &mut [T],
    start: usize,
    memory: &mut [T; TILE],
) {
    let items = block_to_striped(items, memory);
    #[unroll]
    for i in 0..ITEMS {
        let at = start + i * BLOCK as usize + thread_idx().x;
        if at < out.len() {
            out[at] = items[i];
        }
    }
}

/// Running sums of the elements of a thread, behind what comes before them; exclusive, without the element itself.
#[device_fn]
fn from_here<T: Num, F: Fn(T, T) -> T>(
    sums: [T; ITEMS],
    before: T,
    exclusive: bool,
    op: F,
) -> [T; ITEMS] {
    let (mut items, mut last) = (sums, before);
    #[unroll]
    for i in 0..ITEMS {
        let up_to = op(before, sums[i]);
        items[i] = if exclusive { last } else { up_to };
        last = up_to;
    }
    items
}

/// A tile of running sums, of the elements up to each or, exclusive, of those before it.
#[device_fn]
fn scan_tile<T: Num, F: Fn(T, T) -> T>(
    x: &[T],
    out: &mut [T],
    exclusive: bool,
    none: T,
    state: &mut [u32],
    sums: &mut [T],
    totals: &mut [T],
    op: F,
) {
    assume(block_dim().x == BLOCK as usize && block_dim().y == 1 && block_dim().z == 1);
    let (thread, memory) = (thread_idx().x, shared!([T; TILE]));
    let from_warp = shared!([T; 2]);
    let tile = tile_by_ticket(state);
    let mut items = loaded(x, tile * TILE, none, memory);
    let mut sum = items[0];
    #[unroll]
    for i in 1..ITEMS {
        sum = op(sum, items[i]);
        items[i] = sum;
    }
    let before_thread = block_exclusive_scan(sum, none, |a, b| op(a, b));
    if thread + 1 == BLOCK as usize {
        from_warp[0] = op(before_thread, sum);
    }
    barrier();
    if thread < 32 {
        let own = from_warp[0];
        let before = look_back(tile, own, none, state, sums, totals, |a, b| op(a, b));
        if thread == 0 {
            from_warp[1] = before;
        }
    }
    barrier();
    let before = op(from_warp[1], before_thread);
    let items = from_here(items, before, exclusive, |a, b| op(a, b));
    store(items, out, tile * TILE, memory);
}

/// The kernels, each with what it combines by.
macro_rules! kernels {
    ($($(#[$doc:meta])* $name:ident = |$a:ident, $b:ident| $op:expr;)*) => {$(
        $(#[$doc])*
        #[kernel]
        pub(crate) fn $name<T: Num>(
            x: &[T],
            out: &mut [T],
            exclusive: bool,
            none: T,
            state: &mut [u32],
            sums: &mut [T],
            totals: &mut [T],
        ) {
            scan_tile(x, out, exclusive, none, state, sums, totals, |$a, $b| $op);
        }
    )*};
}
kernels! {
    /// Running sums.
    scan_all_sums = |a, b| a + b;
    /// Running products.
    scan_all_products = |a, b| a * b;
}

/// Running sums of a whole buffer by one of the kernels, of the elements up to each or, `exclusive`, of those before it, of
/// which the first has `none`: what changes nothing where it is added.
///
/// # Errors
/// No memory; a device that has failed.
pub(crate) fn scan_all<'a, T: KernelType>(
    jit: &Jit,
    kernel: &Kernel,
    x: impl IntoArg<'a>,
    len: usize,
    none: T,
    exclusive: bool,
) -> Result<Buffer<T>> {
    let tiles = len.div_ceil(TILE);
    let mut out = jit.unspecified::<T>(len)?;
    if tiles == 0 {
        return Ok(out);
    }
    let mut state = jit.zeros::<u32>(1 + tiles)?;
    let (mut sums, mut totals) = (jit.unspecified::<T>(tiles)?, jit.unspecified::<T>(tiles)?);
    let args = [
        x.into_arg(),
        (&mut out).into_arg(),
        exclusive.into_arg(),
        none.into_arg(),
        (&mut state).into_arg(),
        (&mut sums).into_arg(),
        (&mut totals).into_arg(),
    ];
    jit.launch(kernel, tiles as u32, BLOCK, &args)?;
    drop(args);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiln_jit_core::front::AsKernel as _;
    use kiln_jit_core::runtime::Device;

    fn number(i: usize) -> u32 {
        (i as u32).wrapping_mul(2_654_435_761) >> 20
    }

    #[test]
    fn running_sums_of_all_lengths() {
        let jit = Jit::on(Device::cpu());
        let sums = scan_all_sums.as_kernel().expect("it is one");
        for n in [0, 1, 31, 255, 256, 3839, 3840, 3841, 40_000, 300_001] {
            let x: Vec<u32> = (0..n).map(number).collect();
            let buffer = jit.upload(&x).expect("there is memory");
            for exclusive in [false, true] {
                let sums = scan_all(&jit, sums, &buffer, n, 0, exclusive).expect("it runs");
                let mut sum = 0u32;
                let each = |x: &u32| {
                    let before = sum;
                    sum = sum.wrapping_add(*x);
                    if exclusive { before } else { sum }
                };
                let expected: Vec<u32> = x.iter().map(each).collect();
                assert_eq!(sums.to_vec().expect("it ran"), expected, "{n} {exclusive}");
            }
        }
    }
}
