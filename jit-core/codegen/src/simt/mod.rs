//! What a kernel looks like from the side of many threads: the analyses of the CPU backend.
//!
//! A block is run warp by warp, a warp as one vector of lanes (ispc's SPMD on SIMD), so the
//! backend has to know what is the same in all lanes and where the threads of a block meet. Nothing
//! here knows LLVM; `codegen::cpu::vector` writes what these modules find out.
//!
//! | file | subject |
//! |---|---|
//! | `dwindle` | loops that end after a few turns, as they halve what they test |
//! | `inline` | the kernel with its calls replaced by the bodies called |
//! | `scope` | where each variable lives: the smallest region that holds its uses |
//! | `uniformity` | what is uniform over the block, over a warp, or differs from lane to lane |
//! | `segment` | the pieces between barriers, and what lives across |

mod dwindle;
mod inline;
mod scope;
mod segment;
mod uniformity;

pub(crate) use dwindle::dwindles;
pub use inline::InlineError;
#[cfg(feature = "testing")]
pub use inline::inlined;
pub(crate) use inline::{Flat, inline};
pub(crate) use scope::Scopes;
pub(crate) use segment::{Item, SegmentId, Segments, Unfit, Versions};
pub use uniformity::Uniformities;
pub(crate) use uniformity::defining_inst;

/// The threads of a block, and how they are put into warps. Part of what decides the code.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct BlockShape {
    /// Threads in x, y and z; x is the fastest.
    pub threads: [u32; 3],
    /// Lanes of a vector: 1, 8, 16, 32 or 64.
    pub lanes: u32,
    /// Blocks of a row of the grid that are run side by side, warp by warp. Where there are several, each row of a block is of
    /// whole warps.
    pub beside: u32,
}

impl BlockShape {
    /// The number of threads of a block.
    pub(crate) fn count(self) -> u32 {
        self.threads.iter().product()
    }

    /// The number of warps of a block; the last may be partial.
    pub(crate) fn warps_of_one(self) -> u32 {
        self.count().div_ceil(self.lanes)
    }

    /// The number of warps of all blocks that are run side by side.
    pub(crate) fn warps(self) -> u32 {
        self.warps_of_one() * self.beside
    }

    /// Whether the last warp has fewer threads than lanes.
    pub(crate) fn has_tail(self) -> bool {
        !self.count().is_multiple_of(self.lanes)
    }

    /// Whether a warp is a piece of one row, so that y and z are the same in all its lanes.
    pub(crate) fn warps_fit_rows(self) -> bool {
        let [x, y, z] = self.threads;
        x.is_multiple_of(self.lanes) || (y == 1 && z == 1)
    }
}
