//! Running sums of a block in memory of the kernel's: one warp goes over what all threads have put there (CUB
//! `BLOCK_SCAN_RAKING`; Y. Dotsenko et al.: "Fast Scan Algorithms on Graphics Processors", ICS 2008). Each of its lanes takes
//! a segment of values one after the other, so that rounds of shuffles are those of one warp and not of each.
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn sums(x: &[u32], up_to: &mut [u32], before: &mut [u32]) {
//!     let (i, memory) = (thread_idx().x, shared!([u32; 256]));
//!     up_to[i] = block_inclusive_scan_in(x[i], memory, |a, b| a + b);
//!     before[i] = block_exclusive_scan_in(x[i], 100, memory, |a, b| a + b);
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let x = jit.upload(&(0..200).collect::<Vec<u32>>())?;
//! let (mut up_to, mut before) = (jit.zeros(200)?, jit.zeros(200)?);
//! sums.launch(&jit, (1, 200), &x, &mut up_to, &mut before)?;
//! assert_eq!(up_to.to_vec()?[197..], [19_503, 19_701, 19_900]);
//! assert_eq!(before.to_vec()?[197..], [19_406, 19_603, 19_801]);
//! # Ok(())
//! # }
//! ```

use kiln_jit_core::front::macros::{Callable, Front, Operand};
use kiln_jit_core::ir::Type;
use kiln_jit_core::value::DeviceType;
use kiln_kernel_macro::device_fn;

use super::collectives::{
    block_exclusive_scan, block_inclusive_scan, rank_here, scan_dense, threads, warp_here,
};
use super::lanes::LaneGroup;
use crate::plain::memory::barrier;
use crate::plain::warp::{lane_id, shuffle_up, warp_sync};

/// How many bytes an element of a slice has.
fn bytes_of_element<T: DeviceType>(x: &[T]) -> usize {
    size_of_val(x) / x.len().max(1)
}

#[allow(non_camel_case_types, reason = "it has the name of the function")]
enum bytes_of_element {}

impl Callable for bytes_of_element {
    fn call<'k>(front: Front<'k>, _: &[Type], args: &[Operand<'k>]) -> Operand<'k> {
        match args {
            [x] => front.value(x.whole_slice(false).read().element_bytes()),
            _ => front.refuse("`bytes_of_element` is of one slice"),
        }
    }
}

/// Up to how many values, and how many bytes of them, a lane keeps between its two ways over them. More are read again: of a
/// multiprocessor's registers 32 are for each of its 2,048 threads.
const KEPT: usize = 17;
const KEPT_BYTES: usize = 80;
/// How many values are combined one after the other, beside others; the first has one more. They divide one less than [`KEPT`].
const PART: usize = 4;

/// How many values a lane takes one after the other. The number is odd, so that what lanes read at once lies in different banks
/// of shared memory.
#[device_fn]
fn share_of(size: usize) -> usize {
    size.div_ceil(32) | 1
}

/// Where this lane's share begins; of lanes that have no whole one, where the last one does.
///
/// The number is taken out of an array, of which nothing is known before LLVM has done away with it: so bounds are compared where
/// they are, which of a block of known size is nothing, and are not asked for all lanes at the kernel's start, before the size
/// is known.
#[device_fn]
fn begin_of_share(size: usize) -> usize {
    let values = share_of(size);
    let begin = [(lane_id() as usize * values).min(size - values)];
    begin[lane_id() as usize / 32]
}

/// What the shares before this lane's come to, of which it combines its own to `sum`; of the first lane something else. All
/// lanes of the warp come here. Those that have no whole share combine nothing.
#[device_fn]
fn before_share<T: DeviceType, F: Fn(T, T) -> T>(sum: T, whole: usize, op: F) -> T {
    let lanes = LaneGroup::of_first(32);
    let rank = if (lane_id() as usize) < whole {
        lane_id()
    } else {
        0
    };
    let up_to = scan_dense(lanes, rank, sum, |a, b| op(a, b));
    shuffle_up(lanes.members, up_to, 1, 32)
}

/// What a lane begins with where each thread gets what is before it.
#[device_fn]
fn begun<T: DeviceType, F: Fn(T, T) -> T>(first: T, before: T, is_exclusive: bool, op: F) -> T {
    if !is_exclusive {
        before
    } else if lane_id() == 0 {
        first
    } else {
        op(first, before)
    }
}

/// Puts what there is up to a value, or before it, in its place, and gives what there is up to it. Before a value that is alone
/// there is none.
#[device_fn]
fn put<T: DeviceType, F: Fn(T, T) -> T>(
    at: &mut T,
    sum: T,
    value: T,
    is_exclusive: bool,
    is_alone: bool,
    op: F,
) -> T {
    let mut next = value;
    if !is_alone {
        next = op(sum, value);
    }
    *at = if is_exclusive { sum } else { next };
    next
}

/// The values of a share of at most [`KEPT`], and `beyond` behind them.
#[device_fn]
#[inline(always)]
fn kept_of<T: DeviceType>(share: &[T], beyond: T) -> [T; KEPT] {
    let (values, last) = (share.len(), share.len() - 1);
    let mut kept = [beyond; KEPT];
    #[unroll]
    for i in 0..KEPT {
        if i < values {
            kept[i] = share[i.min(last)];
        }
    }
    kept
}

/// What the values of a share come to. All other warps wait for it, so parts are combined beside each other: one value after the
/// other would be a chain of all of them.
#[device_fn]
#[inline(always)]
fn sum_of_kept<T: DeviceType, F: Fn(T, T) -> T>(kept: [T; KEPT], values: usize, op: F) -> T {
    let mut sum = kept[0];
    #[unroll]
    for i in 1..PART + 1 {
        if i < values {
            sum = op(sum, kept[i]);
        }
    }
    #[unroll]
    for begin in (PART + 1..KEPT).step_by(PART) {
        if begin < values {
            let mut part = kept[begin];
            #[unroll]
            for i in 1..PART {
                if begin + i < values {
                    part = op(part, kept[begin + i]);
                }
            }
            sum = op(sum, part);
        }
    }
    sum
}

/// Goes over the values of a block by one warp, whose lanes keep theirs.
///
/// The last lane that has values may have the end of a share; what it and those behind it bring together before is nobody's.
#[device_fn]
fn rake_kept<T: DeviceType, F: Fn(T, T) -> T>(
    memory: &mut [T],
    first: T,
    is_exclusive: bool,
    op: F,
) {
    let size = threads();
    let (values, lane) = (share_of(size), lane_id() as usize);
    let whole = size / values;
    // Of a whole share those that the last one does not have.
    let most = values - (size - whole * values);
    let from = begin_of_share(size);
    let share = &mut memory[from..from + values];
    // So that an index is in bounds whatever the number of values is.
    let last = share.len() - 1;
    let kept = kept_of(share, first);
    let sum = sum_of_kept(kept, values, |a, b| op(a, b));
    let before = before_share(sum, whole, |a, b| op(a, b));
    // Lanes have read what those before them write.
    warp_sync(0xFFFF_FFFF);
    let mut sum = begun(first, before, is_exclusive, |a, b| op(a, b));
    if lane < whole {
        #[unroll]
        for i in 0..KEPT {
            if i < values && i < most {
                let is_alone = i == 0 && !is_exclusive && lane == 0;
                sum = put(
                    &mut share[i.min(last)],
                    sum,
                    kept[i],
                    is_exclusive,
                    is_alone,
                    |a, b| op(a, b),
                );
            }
        }
    }
    if lane <= whole {
        #[unroll]
        for i in 1..KEPT {
            if i < values && i >= most {
                sum = put(
                    &mut share[i.min(last)],
                    sum,
                    kept[i],
                    is_exclusive,
                    false,
                    |a, b| op(a, b),
                );
            }
        }
    }
}

/// Goes over the values of a block by one warp, whose lanes read theirs twice. The rest is as in [`rake_kept()`].
#[device_fn]
fn rake_twice<T: DeviceType, F: Fn(T, T) -> T>(
    memory: &mut [T],
    first: T,
    is_exclusive: bool,
    op: F,
) {
    let size = threads();
    let (values, lane) = (share_of(size), lane_id() as usize);
    let whole = size / values;
    let most = values - (size - whole * values);
    let from = begin_of_share(size);
    let mut sum = first;
    if lane < whole {
        let share = &memory[from..from + values];
        sum = share[0];
        for i in 1..share.len() {
            sum = op(sum, share[i]);
        }
    }
    let before = before_share(sum, whole, |a, b| op(a, b));
    sum = begun(first, before, is_exclusive, |a, b| op(a, b));
    if lane < whole {
        let share = &mut memory[from..from + most];
        let (own, is_alone) = (share[0], !is_exclusive && lane == 0);
        sum = put(&mut share[0], sum, own, is_exclusive, is_alone, |a, b| {
            op(a, b)
        });
        for i in 1..share.len() {
            let own = share[i];
            sum = put(&mut share[i], sum, own, is_exclusive, false, |a, b| {
                op(a, b)
            });
        }
    }
    if lane <= whole {
        let share = &mut memory[from + most..from + values];
        for at in share {
            sum = put(at, sum, *at, is_exclusive, false, |a, b| op(a, b));
        }
    }
}

/// Running sums of the values of all threads, of more than one warp, in memory.
#[device_fn]
fn raked<T: DeviceType, F: Fn(T, T) -> T>(
    value: T,
    first: T,
    memory: &mut [T],
    is_exclusive: bool,
    op: F,
) -> T {
    let (size, own) = (threads(), rank_here());
    // Nobody else has come to it since this thread has read it.
    memory[own] = value;
    barrier();
    if warp_here() == 0 {
        let values = share_of(size);
        if values <= KEPT && values * bytes_of_element(memory) <= KEPT_BYTES {
            rake_kept(memory, first, is_exclusive, |a, b| op(a, b));
        } else {
            rake_twice(memory, first, is_exclusive, |a, b| op(a, b));
        }
    }
    barrier();
    memory[own]
}

/// [`block_inclusive_scan()`](super::block_inclusive_scan()) in memory of the kernel's, with fewer instructions and shuffles (CUB
/// `BlockScan::InclusiveScan` with its `TempStorage`).
///
/// `memory` is shared memory for a value of each thread: too little ends the threads with an error. Calls one after the other
/// may have the same; between another use of it and a call is a barrier. All threads of the block come here, none of which has
/// ended. It is a barrier, too, if the block has more than one warp.
#[device_fn]
pub fn block_inclusive_scan_in<T: DeviceType, F: Fn(T, T) -> T>(
    value: T,
    memory: &mut [T],
    op: F,
) -> T {
    let size = threads();
    assert!(
        memory.len() >= size,
        "a block's running sums take memory for a value of each thread"
    );
    if size > 32 {
        raked(value, value, memory, false, |a, b| op(a, b))
    } else {
        block_inclusive_scan(value, |a, b| op(a, b))
    }
}

/// [`block_exclusive_scan()`](super::block_exclusive_scan()) in memory of the kernel's, as in [`block_inclusive_scan_in()`]
/// (CUB `BlockScan::ExclusiveScan` with its `TempStorage`). `first` is the same for all threads.
#[device_fn]
pub fn block_exclusive_scan_in<T: DeviceType, F: Fn(T, T) -> T>(
    value: T,
    first: T,
    memory: &mut [T],
    op: F,
) -> T {
    let size = threads();
    assert!(
        memory.len() >= size,
        "a block's running sums take memory for a value of each thread"
    );
    if size > 32 {
        raked(value, first, memory, true, |a, b| op(a, b))
    } else {
        block_exclusive_scan(value, first, |a, b| op(a, b))
    }
}
