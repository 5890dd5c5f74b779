//! Counts of a block (CUB `BlockHistogram`).
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn digits(x: &[u32], out: &mut [u32]) {
//!     let (i, counts) = (2 * thread_idx().x, shared!([u32; 10]));
//!     block_histogram([x[i] % 10, x[i + 1] % 10], counts);
//!     // And those of the tens.
//!     block_histogram_add([x[i] / 10, x[i + 1] / 10], counts);
//!     for bin in (thread_idx().x..10).step_by(block_dim().x) {
//!         out[bin] = counts[bin];
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let (x, mut out) = (jit.upload(&[31, 41, 59, 26, 53, 58])?, jit.zeros(10)?);
//! digits.launch(&jit, (1, 3), &x, &mut out)?;
//! assert_eq!(out.to_vec()?, [0, 2, 1, 2, 1, 3, 1, 0, 1, 1]);
//! # Ok(())
//! # }
//! ```

use kiln_jit_core::ir::Scope;
use kiln_kernel_macro::device_fn;

use super::collectives::{rank_here, threads};
use crate::plain::atomic::atomic_add_with;
use crate::plain::memory::barrier;
use crate::plain::ordering::Ordering;

/// Counts how many elements of the block are of each bin, in `counts`, whatever was there (CUB
/// `BlockHistogram::Histogram`). A bin beyond its length is a fault, as any index out of bounds.
///
/// `counts` is shared memory. All threads of the block come here, none of which has ended, and see the counts after it; it
/// is a barrier, too.
#[device_fn]
pub fn block_histogram<const N: usize>(bins: [u32; N], counts: &mut [u32]) {
    let (thread, threads) = (rank_here(), threads());
    barrier();
    // As many turns for each thread, so that they are known where the lengths are.
    for first in (0..counts.len()).step_by(threads) {
        if first + thread < counts.len() {
            counts[first + thread] = 0;
        }
    }
    block_histogram_add(bins, counts);
}

/// Adds to `counts` how many elements of the block are of each bin (CUB `BlockHistogram::Composite`). The rest is as in
/// [`block_histogram()`].
#[device_fn]
pub fn block_histogram_add<const N: usize>(bins: [u32; N], counts: &mut [u32]) {
    barrier();
    #[unroll]
    for i in 0..N {
        atomic_add_with(
            &mut counts[bins[i] as usize],
            1,
            Ordering::Relaxed,
            Scope::Block,
        );
    }
    barrier();
}
