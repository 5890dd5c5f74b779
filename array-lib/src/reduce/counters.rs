//! Counters of blocks that are done, by which the last one is known.

use kiln_jit_core::runtime::Buffer;

use crate::{Arrays, Result};

/// How many are made at once.
const MADE: usize = 1024;

/// Zeros of which each launch takes one. None is taken twice: what a launch with a fault has counted would be
/// there still.
pub(crate) struct Counters {
    zeros: Buffer<u32>,
    taken: usize,
}

impl Arrays {
    /// Has something launched with a counter: the buffer where that is, and its place there. It is zero.
    pub(super) fn with_counter(
        &self,
        launch: impl FnOnce(&mut Buffer<u32>, u32) -> Result<()>,
    ) -> Result<()> {
        // Nothing is locked while a kernel may be compiled.
        let kept = self.counters().lock().pop();
        let mut counters = match kept {
            Some(counters) => counters,
            None => Counters {
                zeros: self.jit().zeros(MADE)?,
                taken: 0,
            },
        };
        launch(&mut counters.zeros, counters.taken as u32)?;
        counters.taken += 1;
        if counters.taken < MADE {
            self.counters().lock().push(counters);
        }
        Ok(())
    }
}
