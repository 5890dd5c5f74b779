//! Exchanges of a block: each thread's elements, from one arrangement to the other (CUB `BlockExchange`).
//!
//! Of a block's elements a thread has, *blocked*, those next to each other, as running sums need them, or, *striped*, one of
//! each run as long as the block, as loads and stores are fast. Running sums of 4 elements a thread:
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn running_sums(x: &mut [u32]) {
//!     let (i, n, memory) = (thread_idx().x, block_dim().x, shared!([u32; 256]));
//!     let striped = [x[i], x[i + n], x[i + 2 * n], x[i + 3 * n]];
//!     let mut mine = block_to_blocked(striped, memory);
//!     mine[1] += mine[0];
//!     mine[2] += mine[1];
//!     mine[3] += mine[2];
//!     let before = block_exclusive_scan(mine[3], 0, |a, b| a + b);
//!     for sum in &mut mine {
//!         *sum += before;
//!     }
//!     let sums = block_to_striped(mine, memory);
//!     (x[i], x[i + n], x[i + 2 * n], x[i + 3 * n]) = (sums[0], sums[1], sums[2], sums[3]);
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let mut x = jit.upload(&[1; 200])?;
//! running_sums.launch(&jit, (1, 50), &mut x)?;
//! assert_eq!(x.to_vec()?, (1..=200).collect::<Vec<u32>>());
//! # Ok(())
//! # }
//! ```

use kiln_kernel_macro::device_fn;

use super::block::this_block;
use crate::plain::memory::barrier;

/// Blocked to striped: thread `t` of `n`, which brings the elements from `t * N` on, gets the elements `t`, `t + n`,
/// `t + 2 * n` and so on (CUB `BlockExchange::BlockedToStriped`).
///
/// `memory` is shared memory for all elements of the block. All threads of the block come here, none of which has ended;
/// it is a barrier, too. What was read of `memory` before is safe to be overwritten.
#[device_fn]
#[inline(always)]
pub fn block_to_striped<T: DeviceType, const N: usize>(items: [T; N], memory: &mut [T]) -> [T; N] {
    let (thread, threads) = (this_block().rank() as usize, this_block().size() as usize);
    let mut striped = items;
    barrier();
    #[unroll]
    for i in 0..N {
        memory[thread * N + i] = items[i];
    }
    barrier();
    #[unroll]
    for i in 0..N {
        striped[i] = memory[i * threads + thread];
    }
    striped
}

/// Striped to blocked: thread `t` of `n`, which brings the elements `t`, `t + n`, `t + 2 * n` and so on, gets those from
/// `t * N` on (CUB `BlockExchange::StripedToBlocked`). The rest is as in [`block_to_striped()`].
#[device_fn]
#[inline(always)]
pub fn block_to_blocked<T: DeviceType, const N: usize>(items: [T; N], memory: &mut [T]) -> [T; N] {
    let (thread, threads) = (this_block().rank() as usize, this_block().size() as usize);
    let mut blocked = items;
    barrier();
    #[unroll]
    for i in 0..N {
        memory[i * threads + thread] = items[i];
    }
    barrier();
    #[unroll]
    for i in 0..N {
        blocked[i] = memory[thread * N + i];
    }
    blocked
}
