//! Ranks and orders of a block by digits of keys (CUB `BlockRadixRank`, `BlockRadixSort`).
//!
//! ```
//! use kiln::prelude::*;
//!
//! /// In the order of distances, which are not negative: their bits are in the same order.
//! #[kernel]
//! fn by_distance(distances: &[f32], order: &mut [u32]) {
//!     let (i, counts) = (2 * thread_idx().x, shared!([u16; 16 * 64]));
//!     let (memory, beside) = (shared!([u32; 128]), shared!([u32; 128]));
//!     let keys = [distances[i].to_bits(), distances[i + 1].to_bits()];
//!     let places = [i as u32, i as u32 + 1];
//!     let (_, places) = block_radix_sort_pairs(keys, places, 32, counts, memory, beside);
//!     order[i] = places[0];
//!     order[i + 1] = places[1];
//! }
//!
//! #[kernel]
//! fn sort(x: &mut [i32]) {
//!     let (i, counts, memory) = (thread_idx().x, shared!([u16; 16 * 64]), shared!([i32; 64]));
//!     x[i] = block_radix_sort([x[i]], 32, counts, memory)[0];
//! }
//!
//! /// The even numbers, in order, then the odd ones.
//! #[kernel]
//! fn even_first(x: &[u32], out: &mut [u32]) {
//!     let (i, counts) = (thread_idx().x, shared!([u16; 16 * 64]));
//!     let ranks = block_radix_rank([x[i] % 2], counts);
//!     out[ranks[0] as usize] = x[i];
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let distances = jit.upload(&[4.0f32, 0.5, 3.0, 0.5, 2.5, 1.0])?;
//! let mut order = jit.zeros(6)?;
//! by_distance.launch(&jit, (1, 3), &distances, &mut order)?;
//! assert_eq!(order.to_vec()?, [1, 3, 5, 4, 2, 0]);
//!
//! let mut x = jit.upload(&[3, -1, 4, -1, 5])?;
//! sort.launch(&jit, (1, 5), &mut x)?;
//! assert_eq!(x.to_vec()?, [-1, -1, 3, 4, 5]);
//!
//! let (x, mut out) = (jit.upload(&[3, 1, 4, 1, 5, 9, 2, 6])?, jit.zeros(8)?);
//! even_first.launch(&jit, (1, 8), &x, &mut out)?;
//! assert_eq!(out.to_vec()?, [4, 2, 6, 3, 1, 1, 5, 9]);
//! # Ok(())
//! # }
//! ```

use kiln_kernel_macro::device_fn;

use super::block::this_block;
use super::collectives::block_exclusive_scan;
use crate::plain::memory::barrier;
use crate::plain::number::Int;

/// Where each element of the block goes if they are put in the order of digits, those of one digit as they are. A digit is
/// below 16; a thread has elements next to each other.
///
/// `counts` is shared memory for 16 numbers a thread; after it, `counts[digit * threads]` is where the elements of a digit
/// begin, until the memory is used again. All threads of the block come here, none of which has ended; it is a barrier, too.
/// A thread has at most 63 elements.
#[device_fn]
pub fn block_radix_rank<const N: usize>(digits: [u32; N], counts: &mut [u16]) -> [u32; N] {
    let (thread, threads) = (this_block().rank() as usize, this_block().size() as usize);
    const {
        assert!(
            N < 64,
            "a block ranks fewer than 65,536 elements, 63 a thread"
        )
    };
    let mut ranks = digits;
    barrier();
    // Those of one digit lie next to each other, a number for each thread, which nobody else changes.
    for digit in 0..16 {
        counts[digit * threads + thread] = 0;
    }
    #[unroll]
    for i in 0..N {
        let at = digits[i] as usize * threads + thread;
        ranks[i] = counts[at] as u32;
        counts[at] += 1;
    }
    barrier();
    let mut sum = 0u32;
    for i in 0..16 {
        sum += counts[16 * thread + i] as u32;
    }
    let mut before = block_exclusive_scan(sum, 0, |a, b| a + b);
    for i in 0..16 {
        let count = counts[16 * thread + i] as u32;
        counts[16 * thread + i] = before as u16;
        before += count;
    }
    barrier();
    #[unroll]
    for i in 0..N {
        ranks[i] += counts[digits[i] as usize * threads + thread] as u32;
    }
    ranks
}

/// Keys whose last `bits` bits are in the order of unsigned numbers, and back.
#[device_fn]
fn flipped<K: Int, const N: usize>(keys: [K; N], bits: u32) -> [K; N] {
    let (mut flipped, negative) = (keys, K::from_i32(-1));
    if negative < K::ZERO {
        #[unroll]
        for i in 0..N {
            flipped[i] = keys[i] ^ K::ONE.wrapping_shl(bits - 1);
        }
    }
    flipped
}

/// The digits of keys from a bit on, of those below `bits`.
#[device_fn]
fn digits<K: Int, const N: usize>(keys: [K; N], shift: u32, bits: u32) -> [u32; N] {
    // Of the last digit there may be fewer bits.
    let mask = if bits - shift < 4 {
        (1u32 << (bits - shift)) - 1
    } else {
        15
    };
    let mut digits = [0u32; N];
    #[unroll]
    for i in 0..N {
        digits[i] = keys[i].wrapping_shr(shift).cast::<u32>() & mask;
    }
    digits
}

/// Elements of the block, each where its rank says.
#[device_fn]
fn placed<T: DeviceType, const N: usize>(
    items: [T; N],
    ranks: [u32; N],
    memory: &mut [T],
) -> [T; N] {
    let (mut placed, thread) = (items, this_block().rank() as usize);
    #[unroll]
    for i in 0..N {
        memory[ranks[i] as usize] = items[i];
    }
    barrier();
    #[unroll]
    for i in 0..N {
        placed[i] = memory[N * thread + i];
    }
    placed
}

/// The keys of the block in the order of their last `bits` bits, which of a signed type are a signed number (CUB
/// `BlockRadixSort::Sort`). A thread has keys next to each other, before and after. A float that is not negative has its bits
/// as its key.
///
/// `counts` is shared memory for 16 numbers a thread, `memory` for all keys. All threads of the block come here, none of
/// which has ended; it is a barrier, too. A thread has at most 63 keys. Of a block with fewer keys the others have the
/// largest, and come last.
#[device_fn]
pub fn block_radix_sort<K: Int, const N: usize>(
    keys: [K; N],
    bits: u32,
    counts: &mut [u16],
    memory: &mut [K],
) -> [K; N] {
    let mut sorted = flipped(keys, bits);
    for shift in (0..bits).step_by(4) {
        let ranks = block_radix_rank(digits(sorted, shift, bits), counts);
        sorted = placed(sorted, ranks, memory);
    }
    flipped(sorted, bits)
}

/// [`block_radix_sort()`] with a value beside each key, which takes the same way; those of alike keys stay as they are.
/// `beside` is shared memory for all values.
#[device_fn]
pub fn block_radix_sort_pairs<K: Int, V: DeviceType, const N: usize>(
    keys: [K; N],
    values: [V; N],
    bits: u32,
    counts: &mut [u16],
    memory: &mut [K],
    beside: &mut [V],
) -> ([K; N], [V; N]) {
    let (mut sorted, mut taken) = (flipped(keys, bits), values);
    for shift in (0..bits).step_by(4) {
        let ranks = block_radix_rank(digits(sorted, shift, bits), counts);
        sorted = placed(sorted, ranks, memory);
        taken = placed(taken, ranks, beside);
    }
    (flipped(sorted, bits), taken)
}
