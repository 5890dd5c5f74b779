//! A context's first buffers, which come from `cuMemAlloc` and not from the pool.
//!
//! A driver takes 8 to 10 ms for the first allocation from any pool, whatever its size, and a third of one for the
//! first by `cuMemAlloc` (`benches/RESULTS.md`): a program that allocates, launches, reads and ends never needs the
//! pool, also if it drops buffers meanwhile (`given_up.rs`). So a context's first [`FIRST`] allocations are plain ones;
//! from then on memory is the pool's.

use std::sync::atomic::Ordering::Relaxed;

use super::context::CudaContext;

/// How many allocations may be plain. `cuMemAlloc` takes 0.01 to 0.13 ms of each, many times what the pool takes: together
/// they cost a fifth of what the pool's first allocation does, at most.
pub(super) const FIRST: usize = 16;

impl CudaContext {
    /// Whether one more may be allocated, which is then taken for one that was.
    pub(super) fn may_allocate_first(&self) -> bool {
        let left = self.first_left.load(Relaxed);
        left > 0
            && self
                .first_left
                .fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1))
                .is_ok()
    }
}
