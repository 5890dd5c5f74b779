//! Counters of blocks that are done, by which the last one is known.

use kiln_jit_core::runtime::Buffer;

use crate::{Arrays, Result};

/// How many are made at once.
const MADE: usize = 1024;

/// Zeros of which each launch takes one. None is taken twice: what a launch with a fault has counted would be
/// there still.
#[derive(Default)]
pub(crate) struct Counters {
    zeros: Option<Buffer<u32>>,
    taken: usize,
}

impl Arrays {
    /// Has something launched with a counter: the buffer where that is, and its place there. It is zero.
    pub(super) fn with_counter<R>(
        &self,
        launch: impl FnOnce(&mut Buffer<u32>, u32) -> Result<R>,
    ) -> Result<R> {
        let mut counters = self.counters().lock();
        let counters = &mut *counters;
        let zeros = match &mut counters.zeros {
            Some(zeros) if counters.taken < zeros.len() => zeros,
            zeros => {
                counters.taken = 0;
                zeros.insert(self.jit().zeros(MADE)?)
            }
        };
        counters.taken += 1;
        launch(zeros, counters.taken as u32 - 1)
    }
}
