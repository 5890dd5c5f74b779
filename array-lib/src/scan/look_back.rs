//! Tiles that learn what those before them come to, in one pass: each block takes the next tile of elements, says what
//! that alone comes to, and looks back at what the tiles before have said, of themselves or of all up to them, until it
//! has all of it (D. Merrill, M. Garland: "Single-pass Parallel Prefix Scan with Decoupled Look-back", NVIDIA 2016).
//!
//! Blocks take tiles by a ticket, so that whoever is waited for has begun, whatever order blocks run in.
//!
//! What a tile says is in words that have both what is said and the number, so that who sees the one sees the other:
//! words are written and read relaxed, and no fence is waited for on either side. A number of 64 bits is in two of them.
//! Of a tile each word is written once for what is said of itself and once for what is said of all, so two words that
//! say the same are of one number; of words that do not, the second is still to come. Nothing but these words is handed
//! from block to block.

use kiln_device_stdlib::plain::atomic::{atomic_add, atomic_load, atomic_store};
use kiln_device_stdlib::plain::index::thread_idx;
use kiln_device_stdlib::plain::memory::barrier;
use kiln_device_stdlib::plain::number::{Num, NumOps as _};
use kiln_device_stdlib::plain::ordering::Ordering;
use kiln_device_stdlib::plain::warp::{ballot, lane_id, shuffle_down, shuffle_idx, shuffle_up};
use kiln_device_stdlib::time::nanosleep;
use kiln_device_stdlib::warp::FULL_MASK;
use kiln_jit_core::error::Result;
use kiln_jit_core::ir::Scope;
use kiln_jit_core::jit::Jit;
use kiln_jit_core::runtime::Buffer;
use kiln_kernel_macro::device_fn;

/// Threads of a block.
pub(super) const BLOCK: u32 = 256;

/// Warps of a block.
pub(super) const WARPS: usize = BLOCK as usize / 32;

/// What is known of a tile: nothing, its own sum, the sum of all elements up to its end.
const NOTHING: u64 = 0;
const OWN: u64 = 1;
const ALL: u64 = 2;

/// What is said is above the half of a word that has a number's bits.
const HALF: u32 = 32;
const LOW: u64 = 0xffff_ffff;

/// A number that the types of 64 bits have, and no other.
const WIDE: f64 = 8_589_934_593.0;

/// Nanoseconds until a warp looks again for what was not there.
const PAUSE: u32 = 50;

/// Whether numbers are floats.
#[device_fn]
fn is_float<T: Num>() -> bool {
    T::from_f64(0.5) != T::ZERO
}

/// Whether numbers have more bits than half a word.
#[device_fn]
fn is_wide<T: Num>() -> bool {
    T::from_f64(WIDE).cast::<f64>() == WIDE
}

/// The bits of a number; of an integer of fewer than 64, more of the same sign may stand before.
#[device_fn]
fn bits_of<T: Num>(number: T) -> u64 {
    if is_float::<T>() {
        if is_wide::<T>() {
            number.cast::<f64>().to_bits()
        } else {
            number.cast::<f32>().to_bits() as u64
        }
    } else {
        number.cast::<u64>()
    }
}

/// The number of these bits.
#[device_fn]
fn number_of<T: Num>(bits: u64) -> T {
    if is_float::<T>() {
        if is_wide::<T>() {
            f64::from_bits(bits).cast::<T>()
        } else {
            f32::from_bits(bits as u32).cast::<T>()
        }
    } else {
        bits.cast::<T>()
    }
}

/// Says what a tile comes to, by the first thread of a block.
#[device_fn]
fn publish<T: Num>(tile: usize, said: u64, number: T, state: &mut [u64]) {
    if lane_id() == 0 {
        let (said, bits) = (said << HALF, bits_of(number));
        let low = said | (bits & LOW);
        if is_wide::<T>() {
            let high = said | (bits >> HALF);
            atomic_store(
                &mut state[1 + 2 * tile],
                low,
                Ordering::Relaxed,
                Scope::Device,
            );
            atomic_store(
                &mut state[2 + 2 * tile],
                high,
                Ordering::Relaxed,
                Scope::Device,
            );
        } else {
            atomic_store(&mut state[1 + tile], low, Ordering::Relaxed, Scope::Device);
        }
    }
}

/// Says what a tile alone comes to, by the first thread of a block.
#[device_fn]
pub(super) fn publish_own<T: Num>(tile: usize, own: T, state: &mut [u64]) {
    publish(tile, OWN, own, state);
}

/// Says what all tiles up to the end of this one come to, by the first thread of a block.
#[device_fn]
pub(super) fn publish_all<T: Num>(tile: usize, all: T, state: &mut [u64]) {
    publish(tile, ALL, all, state);
}

/// What is said of a tile, and the number.
#[device_fn]
fn known<T: Num>(tile: usize, state: &[u64]) -> (u64, T) {
    if is_wide::<T>() {
        let low = atomic_load(&state[1 + 2 * tile], Ordering::Relaxed, Scope::Device);
        let high = atomic_load(&state[2 + 2 * tile], Ordering::Relaxed, Scope::Device);
        let is_one = low >> HALF == high >> HALF;
        let said = if is_one { low >> HALF } else { NOTHING };
        (said, number_of::<T>((low & LOW) | (high << HALF)))
    } else {
        let word = atomic_load(&state[1 + tile], Ordering::Relaxed, Scope::Device);
        (word >> HALF, number_of::<T>(word & LOW))
    }
}

/// What the tiles before this one come to, for the first warp of a block.
#[device_fn]
pub(super) fn before_tile<T: Num, F: Fn(T, T) -> T>(
    tile: usize,
    none: T,
    state: &[u64],
    op: F,
) -> T {
    let lane = lane_id() as usize;
    let (mut before, mut end) = (none, tile);
    while end > 0 {
        // Lane 0 has the last of these tiles; what would lie before the first is nothing.
        let is_there = lane < end;
        let at = if is_there { end - 1 - lane } else { 0 };
        let (mut sum, mut last, mut waits) = (none, 32, true);
        while waits {
            let mut said = ALL;
            if is_there {
                let found = known::<T>(at, state);
                said = found.0;
                sum = found.1;
            }
            // Nobody waits for a tile that lies before one whose sum is that of all. All are looked at again, as there
            // may be a nearer one by then.
            last = ballot(FULL_MASK, said == ALL).trailing_zeros();
            waits = ballot(FULL_MASK, said == NOTHING).trailing_zeros() < last;
            if waits {
                nanosleep(PAUSE);
            }
        }
        if lane as u32 > last {
            sum = none;
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

/// What the lanes of a warp up to each have.
#[device_fn]
pub(super) fn scan_lanes<T: Num, F: Fn(T, T) -> T>(value: T, op: F) -> T {
    let (mut sum, lane) = (value, lane_id());
    for delta in [1, 2, 4, 8, 16] {
        let earlier = shuffle_up(FULL_MASK, sum, delta, 32);
        if lane >= delta {
            sum = op(earlier, sum);
        }
    }
    sum
}

/// The next tile of those that no block has, for all threads of a block.
#[device_fn]
pub(super) fn tile_by_ticket(state: &mut [u64]) -> usize {
    let ticket = shared!([u32; 1]);
    if thread_idx().x == 0 {
        ticket[0] = atomic_add(&mut state[0], 1) as u32;
    }
    barrier();
    ticket[0] as usize
}

/// What so many tiles say of numbers of a type: nothing so far. Before all stands the number of tiles that are taken.
///
/// # Errors
/// No memory; a device that has failed.
pub(super) fn nothing_said<T>(jit: &Jit, tiles: usize) -> Result<Buffer<u64>> {
    let words = if size_of::<T>() > 4 { 2 } else { 1 };
    jit.zeros(1 + words * tiles)
}
