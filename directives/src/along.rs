//! Along what the threads of a block lie that a loop is distributed over: a dimension of the block, its warps or the lanes of a warp.
//!
//! Warps and lanes are of the last dimension, of which neighbours are neighbours on the device: of each 32 neighbouring threads, which
//! are a warp (CUDA guide, "SIMT Architecture"), the first one is lane 0. A loop over that dimension goes over both.

use crate::apply::Levels;
use crate::schedule::{OverThreads, Partition, Schedule};

/// The threads of a warp.
pub(crate) const WARP: u32 = 32;

/// Along what threads lie.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Along {
    /// A dimension of the block, by its number.
    Dim(usize),
    /// The warps of the last dimension.
    Warps,
    /// The lanes of a warp.
    Lanes,
}

impl Along {
    /// Where a thread is that has such places along the dimensions of its block.
    pub(crate) fn place(self, places: &[i128]) -> Option<i128> {
        let last = || places.last();
        match self {
            Along::Dim(level) => places.get(level).copied(),
            Along::Warps => last().map(|place| place / i128::from(WARP)),
            Along::Lanes => last().map(|place| place % i128::from(WARP)),
        }
    }
}

impl Levels {
    /// Along what a loop of this partition is distributed that has these levels around.
    pub(crate) fn along(self, partition: Partition) -> Option<Along> {
        Some(match partition.over_threads? {
            OverThreads::Threads => Along::Dim(self.threads),
            OverThreads::Warps => Along::Warps,
            OverThreads::Lanes => Along::Lanes,
        })
    }
}

impl Schedule {
    /// Whether a loop is distributed over warps or lanes.
    pub(crate) fn has_warps(&self) -> bool {
        let mut loops = self.loops.iter();
        loops.any(|held| {
            let over = held.partition.over_threads;
            matches!(over, Some(OverThreads::Warps | OverThreads::Lanes))
        })
    }

    /// How many places there are; 1 where the block has none such.
    pub(crate) fn places(&self, along: Along) -> u32 {
        let extent = |dim: Option<&u32>| dim.copied().unwrap_or(1);
        match along {
            Along::Dim(level) => extent(self.threads.get(level)),
            Along::Warps => extent(self.threads.last()) / WARP,
            Along::Lanes => WARP,
        }
        .max(1)
    }

    /// How many places a loop is distributed over within a block; 1 if it is not.
    pub(crate) fn places_of(&self, partition: Partition, levels: Levels) -> u32 {
        let along = levels.along(partition);
        along.map_or(1, |along| self.places(along))
    }

    /// What tells the threads of a block apart, a dimension that is a warp's and a lane's only where a loop needs it so.
    pub(crate) fn all_along(&self) -> Vec<Along> {
        let dims = 0..self.threads.len();
        let mut all: Vec<Along> = dims.map(Along::Dim).collect();
        if self.has_warps() {
            all.pop();
            all.extend([Along::Warps, Along::Lanes]);
        }
        all
    }

    /// Along what no loop around is distributed, of loops with these levels.
    pub(crate) fn undivided(&self, levels: Levels) -> Vec<Along> {
        let last = self.threads.len().saturating_sub(1);
        let mut all: Vec<Along> = (levels.threads..last).map(Along::Dim).collect();
        all.extend(match (levels.warps, levels.lanes) {
            (false, false) => (levels.threads <= last).then_some(Along::Dim(last)),
            (true, false) => Some(Along::Lanes),
            (false, true) => Some(Along::Warps),
            (true, true) => None,
        });
        all
    }
}
