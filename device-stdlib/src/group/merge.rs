//! Orders of a block by comparison (CUB `BlockMergeSort`), and of two of its parts that are in order.
//!
//! Threads find by bisection which elements of the two parts are theirs (S. Odeh, O. Green, Z. Mwassi, O. Shmueli, Y. Birk:
//! "Merge Path: Parallel Merging Made Simple", IPDPSW 2012).
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn sort(x: &mut [f64]) {
//!     let (n, tile, spare) = (x.len(), shared!([f64; 128]), shared!([f64; 128]));
//!     for i in (thread_idx().x..n).step_by(block_dim().x) {
//!         tile[i] = x[i];
//!     }
//!     block_merge_sort(&mut tile[..n], &mut spare[..n], |a, b| a < b);
//!     for i in (thread_idx().x..n).step_by(block_dim().x) {
//!         x[i] = tile[i];
//!     }
//! }
//!
//! #[kernel]
//! fn merge(x: &[u32], y: &[u32], out: &mut [u32]) {
//!     block_merge(x, y, out, |a, b| a < b);
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let mut x = jit.upload(&[3.5, -1.0, 4.0, 1.5, 5.0, -9.5])?;
//! sort.launch(&jit, (1, 4), &mut x)?;
//! assert_eq!(x.to_vec()?, [-9.5, -1.0, 1.5, 3.5, 4.0, 5.0]);
//!
//! let (x, y) = (jit.upload(&[2, 3, 5, 7, 11])?, jit.upload(&[4, 6, 8])?);
//! let mut out = jit.zeros(8)?;
//! merge.launch(&jit, (1, 32), &x, &y, &mut out)?;
//! assert_eq!(out.to_vec()?, [2, 3, 4, 5, 6, 7, 8, 11]);
//! # Ok(())
//! # }
//! ```

use kiln_kernel_macro::device_fn;

use super::block::this_block;
use crate::plain::memory::barrier;

/// How many of the first `diagonal` elements of two parts, put together in order, are of the first part; those of it that
/// are like one of the second come before that.
#[device_fn]
fn split<T: DeviceType, F: Fn(T, T) -> bool>(
    first: &[T],
    second: &[T],
    diagonal: usize,
    less: F,
) -> usize {
    let mut low = if diagonal > second.len() {
        diagonal - second.len()
    } else {
        0
    };
    let mut high = diagonal.min(first.len());
    while low < high {
        let middle = (low + high) / 2;
        if less(second[diagonal - 1 - middle], first[middle]) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// Writes the elements from `start` to `end` of two parts, put together in order.
#[device_fn]
fn merge<T: DeviceType, F: Fn(T, T) -> bool>(
    first: &[T],
    second: &[T],
    out: &mut [T],
    start: usize,
    end: usize,
    less: F,
) {
    let mut a = split(first, second, start, |a, b| less(a, b));
    let mut b = start - a;
    for at in start..end {
        let mut is_first = a < first.len();
        if is_first && b < second.len() {
            is_first = !less(second[b], first[a]);
        }
        if is_first {
            out[at] = first[a];
            a += 1;
        } else {
            out[at] = second[b];
            b += 1;
        }
    }
}

/// Which elements are a thread's, of so many: those from the first number to the second, as many for each thread.
#[device_fn]
fn mine(len: usize) -> (usize, usize) {
    let each = len.div_ceil(this_block().size() as usize);
    let start = (each * this_block().rank() as usize).min(len);
    (start, (start + each).min(len))
}

/// Writes to `out` the elements of two parts, each of which is in order, in order: of those alike the first part's come
/// first. `less` tells whether its first is before its second.
///
/// `out` is as long as both, in shared memory as a rule. All threads of the block come here, none of which has ended, and see
/// it after that; it is a barrier, too.
#[device_fn]
pub fn block_merge<T: DeviceType, F: Fn(T, T) -> bool>(
    first: &[T],
    second: &[T],
    out: &mut [T],
    less: F,
) {
    barrier();
    let (start, end) = mine(first.len() + second.len());
    if start < end {
        merge(first, second, out, start, end, |a, b| less(a, b));
    }
    barrier();
}

/// From runs of a length that are in order to runs of twice that, of which the last may be shorter.
#[device_fn]
fn merge_runs<T: DeviceType, F: Fn(T, T) -> bool>(from: &[T], to: &mut [T], run: usize, less: F) {
    let (start, end) = mine(from.len());
    if start < end {
        // A thread's elements are of one pair of runs, as these are multiples of them.
        let first = start / (2 * run) * (2 * run);
        let (middle, last) = (
            (first + run).min(from.len()),
            (first + 2 * run).min(from.len()),
        );
        merge(
            &from[first..middle],
            &from[middle..last],
            &mut to[first..last],
            start - first,
            end - first,
            |a, b| less(a, b),
        );
    }
    barrier();
}

/// Puts the elements of `x` in order, alike ones as they are (CUB `BlockMergeSort::StableSort`). `less` tells whether its first
/// is before its second.
///
/// `x` is of any length, in shared memory as a rule, and `spare` as long, whatever is in it. All threads of the block come
/// here, none of which has ended, and see the order after it; it is a barrier, too.
#[device_fn]
pub fn block_merge_sort<T: DeviceType, F: Fn(T, T) -> bool>(x: &mut [T], spare: &mut [T], less: F) {
    barrier();
    let (start, end) = mine(x.len());
    for i in start + 1..end {
        let (item, mut at) = (x[i], i);
        while at > start && less(item, x[at - 1]) {
            x[at] = x[at - 1];
            at -= 1;
        }
        x[at] = item;
    }
    barrier();
    let (len, mut run) = (x.len(), x.len().div_ceil(this_block().size() as usize));
    while run < len {
        merge_runs(&*x, &mut *spare, run, |a, b| less(a, b));
        // Where all are one run by now, it takes them back.
        merge_runs(&*spare, &mut *x, 2 * run, |a, b| less(a, b));
        run *= 4;
    }
}
