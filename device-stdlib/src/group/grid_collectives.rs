//! What all threads of a grid compute together, in cooperative launches, with an operator of the kernel's.
//!
//! Each block combines its own values, one of its threads leaves the result in global memory, the grid waits, and each block
//! combines what it needs of these.
//!
//! That memory is the kernel's: a slice with an element for each block, an argument as any other. So it has the type of the
//! values and the length that the launch needs, launches side by side each have their own, and nothing is set aside for
//! kernels that combine nothing. What is in it before does not matter, and one slice serves any number of calls.
//!
//! An operator is associative; it need not be commutative. The order is that of ranks, so floats are added up in the same
//! order for all threads, and in each launch of the same grid.
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn of_grid(x: &[u32], out: &mut [[u32; 3]], memory: &mut [u32]) {
//!     let i = this_grid().rank() as usize;
//!     out[i] = [
//!         grid_reduce(x[i], memory, |a, b| a.max(b)),
//!         grid_inclusive_scan(x[i], memory, |a, b| a + b),
//!         grid_exclusive_scan(x[i], 100, memory, |a, b| a + b),
//!     ];
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let (x, mut out) = (jit.upload(&[3, 1, 4, 1, 5, 9])?, jit.upload(&[[0; 3]; 6])?);
//! // Three blocks of two threads.
//! let config = LaunchConfig::new(3, 2).cooperative();
//! of_grid.launch(&jit, config, &x, &mut out, &mut jit.zeros(3)?)?;
//! assert_eq!(out.to_vec()?[2..5], [[9, 8, 104], [9, 9, 108], [9, 14, 109]]);
//! # Ok(())
//! # }
//! ```

use kiln_kernel_macro::device_fn;

use super::collectives::{
    block_exclusive_scan, block_inclusive_scan, block_reduce, block_reduce_to_first,
};
use super::grid::this_grid;
use crate::plain::index::{block_size, thread_linear_id};

/// Ends the threads of a grid that has more blocks than there is memory for; how many blocks it has.
#[device_fn]
fn check_memory<T: DeviceType>(memory: &[T]) -> usize {
    let blocks = this_grid().num_blocks() as usize;
    assert!(
        memory.len() >= blocks,
        "what a grid combines takes memory for a value of each block"
    );
    blocks
}

/// Leaves what the block comes to, which the thread of a rank has, in its element, and waits until all blocks have.
#[device_fn]
fn leave<T: DeviceType>(of_block: T, rank: usize, memory: &mut [T]) {
    let grid = this_grid();
    // What an earlier call left has been read.
    grid.sync();
    if thread_linear_id() == rank {
        memory[grid.block_rank() as usize] = of_block;
    }
    grid.sync();
}

/// Combines what the first `count` blocks have left, one at least, for all threads of the block: each takes some next to
/// each other, and then the block its threads'.
#[device_fn]
fn combine_left<T: DeviceType, F: Fn(T, T) -> T>(memory: &[T], count: usize, op: F) -> T {
    let each = count.div_ceil(block_size());
    let from = thread_linear_id() * each;
    let has_some = from < count;
    let mut sum = memory[if has_some { from } else { 0 }];
    if has_some {
        for at in from + 1..(from + each).min(count) {
            sum = op(sum, memory[at]);
        }
    }
    // Threads that have none are behind those that have.
    block_reduce(
        (sum, has_some),
        |a, b| {
            if b.1 { (op(a.0, b.0), true) } else { a }
        },
    )
    .0
}

/// Combines the values of all threads of the grid by `op`, in the order of ranks, for all of them.
///
/// `memory` is global memory with an element for each block, which all threads bring alike; less ends the threads with an
/// error. All threads of the grid come here, none of which has ended, in a cooperative launch; they wait for each other
/// twice, as in [`GridGroup::sync()`](super::GridGroup::sync).
#[device_fn]
pub fn grid_reduce<T: DeviceType, F: Fn(T, T) -> T>(value: T, memory: &mut [T], op: F) -> T {
    let blocks = check_memory(memory);
    let of_block = block_reduce_to_first(value, |a, b| op(a, b));
    leave(of_block, 0, memory);
    combine_left(memory, blocks, |a, b| op(a, b))
}

/// Combines the values of the threads of the grid up to this one, and its own. The rest is as in [`grid_reduce()`].
#[device_fn]
pub fn grid_inclusive_scan<T: DeviceType, F: Fn(T, T) -> T>(
    value: T,
    memory: &mut [T],
    op: F,
) -> T {
    check_memory(memory);
    let mut sum = block_inclusive_scan(value, |a, b| op(a, b));
    leave(sum, block_size() - 1, memory);
    let blocks_before = this_grid().block_rank() as usize;
    if blocks_before > 0 {
        sum = op(combine_left(memory, blocks_before, |a, b| op(a, b)), sum);
    }
    sum
}

/// Combines the values of the threads of the grid below this one, after `first`, which alone the first thread gets. The
/// rest is as in [`grid_reduce()`].
#[device_fn]
pub fn grid_exclusive_scan<T: DeviceType, F: Fn(T, T) -> T>(
    value: T,
    first: T,
    memory: &mut [T],
    op: F,
) -> T {
    check_memory(memory);
    let of_block = block_reduce_to_first(value, |a, b| op(a, b));
    leave(of_block, 0, memory);
    let mut before = first;
    let blocks_before = this_grid().block_rank() as usize;
    if blocks_before > 0 {
        let of_blocks = combine_left(memory, blocks_before, |a, b| op(a, b));
        before = op(first, of_blocks);
    }
    block_exclusive_scan(value, before, |a, b| op(a, b))
}
