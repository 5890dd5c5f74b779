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
    block_exclusive_scan, block_inclusive_scan, lanes_here, rank_here, scan_dense, threads,
    warp_here,
};
use super::lanes::LaneGroup;
use crate::plain::memory::barrier;
use crate::plain::warp::{lane_id, shuffle_up};

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

/// Up to how many values, and how many bytes of them, a lane takes one after the other. With twice as many an H200 took longer
/// than by a round of each warp (benches/RESULTS.md, 2026-11-30).
const SEGMENT: usize = 8;
const SEGMENT_BYTES: usize = 64;

/// Whether one warp goes over the values of a block; in blocks of one warp there are no others to be spared.
#[device_fn]
fn is_raked(size: usize, bytes: usize) -> bool {
    let segment = size.div_ceil(32);
    size > 32 && segment <= SEGMENT && segment * bytes <= SEGMENT_BYTES
}

/// As a power of two how many values lie in all banks of shared memory, 128 bytes. 0 of blocks with part of a warp, whose
/// values lie as they come.
#[device_fn]
fn row(size: usize, bytes: usize) -> u32 {
    if size % 32 != 0 {
        0
    } else if bytes <= 4 {
        5
    } else if bytes <= 8 {
        4
    } else {
        3
    }
}

/// Where the value of a thread lies. Rows of `2^row` values are each in an order of its own, so that values of threads side by
/// side are in different banks, and so are those a segment apart.
#[device_fn]
fn place(thread: usize, row: u32) -> usize {
    thread ^ (thread >> row & ((1 << row) - 1))
}

/// The threads whose values a lane takes: from the first to before the second.
#[device_fn]
fn segment(size: usize) -> (usize, usize) {
    let values = size.div_ceil(32);
    let first = lane_id() as usize * values;
    (first, (first + values).min(size))
}

/// The values of this lane's segment, read before any of them is written; of a lane without one, and beyond, `other`.
#[device_fn]
#[inline(always)]
fn taken<T: DeviceType>(memory: &[T], size: usize, row: u32, other: T) -> [T; SEGMENT] {
    let (first, end) = segment(size);
    let mut values = [other; SEGMENT];
    #[unroll]
    for i in 0..SEGMENT {
        if first + i < end {
            values[i] = memory[place(first + i, row)];
        }
    }
    values
}

/// What the values before this lane's segment come to; of the first lane something else. All lanes of the first warp come here.
#[device_fn]
fn before_segment<T: DeviceType, F: Fn(T, T) -> T>(values: [T; SEGMENT], size: usize, op: F) -> T {
    let (first, end) = segment(size);
    let lanes = LaneGroup::of_first(lanes_here());
    let mut sum = values[0];
    #[unroll]
    for i in 1..SEGMENT {
        if first + i < end {
            sum = op(sum, values[i]);
        }
    }
    // Lanes behind the last value combine nothing.
    let rank = if first < end { lane_id() } else { 0 };
    let up_to = scan_dense(lanes, rank, sum, |a, b| op(a, b));
    shuffle_up(lanes.members, up_to, 1, 32)
}

/// [`block_inclusive_scan()`](super::block_inclusive_scan()) in memory of the kernel's, in less time for up to 256
/// threads, of values of 16 bytes for up to 128, and the same for more (CUB `BlockScan::InclusiveScan` with its `TempStorage`).
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
    let bytes = bytes_of_element(memory);
    if is_raked(size, bytes) {
        let (own, row) = (rank_here(), row(size, bytes));
        // Nobody else has come to it since this thread has read it.
        memory[place(own, row)] = value;
        barrier();
        if warp_here() == 0 {
            let values = taken(memory, size, row, value);
            let before = before_segment(values, size, |a, b| op(a, b));
            let (first, end) = segment(size);
            let mut sum = values[0];
            if 0 < first && first < end {
                sum = op(before, sum);
                memory[place(first, row)] = sum;
            }
            #[unroll]
            for i in 1..SEGMENT {
                if first + i < end {
                    sum = op(sum, values[i]);
                    memory[place(first + i, row)] = sum;
                }
            }
        }
        barrier();
        memory[place(own, row)]
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
    let bytes = bytes_of_element(memory);
    if is_raked(size, bytes) {
        let (own, row) = (rank_here(), row(size, bytes));
        // Nobody else has come to it since this thread has read it.
        memory[place(own, row)] = value;
        barrier();
        if warp_here() == 0 {
            let values = taken(memory, size, row, value);
            let before = before_segment(values, size, |a, b| op(a, b));
            let (begin, end) = segment(size);
            let mut sum = first;
            if 0 < begin && begin < end {
                sum = op(first, before);
            }
            #[unroll]
            for i in 0..SEGMENT {
                if begin + i < end {
                    memory[place(begin + i, row)] = sum;
                    sum = op(sum, values[i]);
                }
            }
        }
        barrier();
        memory[place(own, row)]
    } else {
        block_exclusive_scan(value, first, |a, b| op(a, b))
    }
}
