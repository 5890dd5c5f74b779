//! The operations that backends understand: where a thread is, and what the lanes of a warp do
//! together.
//!
//! A row that is one of these says so ([`IntrinsicDef::known`]), and a backend may have code of its own
//! for it. All other rows are what their cells and their meaning say. A row's name says nothing to a
//! backend.

use super::{Effects, IntrinsicDef, Meaning, TypePattern};
use crate::CompareOp;
use crate::all_variants;
use crate::types::Scalar;

/// A dimension of blocks and grids.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Axis {
    /// The fastest.
    X,
    /// The middle one.
    Y,
    /// The slowest.
    Z,
}

// The fastest first.
all_variants! {
    Axis { X, Y, Z }
}

impl Axis {
    /// 0 for x, 1 for y, 2 for z.
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// How a shuffle finds the lane that each lane reads.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Shuffle {
    /// By its number in the segment.
    Idx,
    /// By how far it is below.
    Up,
    /// By how far it is above.
    Down,
    /// By which bits of its number differ.
    Xor,
}

/// What a vote tells.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Vote {
    /// Which lanes vote yes, as a mask.
    Ballot,
    /// Whether a lane does.
    Any,
    /// Whether all do.
    All,
    /// Whether all vote the same.
    Uniform,
}

/// What a match tells.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Match {
    /// The lanes with each lane's value, as a mask.
    Any,
    /// All lanes, if all have one value, else none.
    All,
}

/// How the values of lanes become one.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Reduction {
    /// The sum of the values, which wraps around.
    Add,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// Bits that all have.
    And,
    /// Bits that one has.
    Or,
    /// Bits that an odd number of them has.
    Xor,
}

/// An operation that backends understand (CUDA guide, "Built-in Variables", "Warp Vote Functions" and
/// those after it). All numbers are `u32`; operations of a warp take their member mask first.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Known {
    /// The index of the thread in its block.
    ThreadIdx(Axis),
    /// The index of the block in the grid.
    BlockIdx(Axis),
    /// Threads of a block.
    BlockDim(Axis),
    /// Blocks of the grid.
    GridDim(Axis),
    /// The number of the thread in its warp.
    LaneId,
    /// The number of the warp in its block.
    WarpId,
    /// The lanes whose numbers compare so to the thread's own, as a mask.
    LaneMask(CompareOp),
    /// The lanes that are here, as a mask.
    ActiveMask,
    /// The value of another lane: of value, source or distance, and width of a segment.
    Shuffle(Shuffle),
    /// What the lanes say to a `bool`.
    Vote(Vote),
    /// Which lanes have the same bits.
    Match(Match),
    /// All lanes' values as one.
    Reduce(Reduction),
    /// The lanes wait for each other, and see what they wrote.
    WarpSync,
    /// Whether the target is a GPU, a `bool`.
    TargetIsGpu,
    /// The architecture of NVIDIA's that the target is, 90 for sm_90; 0 of any other.
    TargetSm,
}

/// What a row means, roughly.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Kind {
    Function,
    Position,
    Warp,
}

const U32: TypePattern = TypePattern::Exact(Scalar::U32);
const BOOL: TypePattern = TypePattern::Exact(Scalar::Bool);

impl Known {
    /// Whether the operation is about lanes of a warp: there are then 32 of them.
    pub(crate) fn is_of_warp(self) -> bool {
        match self {
            Known::ThreadIdx(_)
            | Known::BlockIdx(_)
            | Known::BlockDim(_)
            | Known::GridDim(_)
            | Known::TargetIsGpu
            | Known::TargetSm => false,
            Known::LaneId
            | Known::WarpId
            | Known::LaneMask(_)
            | Known::ActiveMask
            | Known::Shuffle(_)
            | Known::Vote(_)
            | Known::Match(_)
            | Known::Reduce(_)
            | Known::WarpSync => true,
        }
    }

    /// What a row has to take and give to be it. A parameter of `None` is of the row's choice.
    fn signature(self) -> (Kind, &'static [Option<TypePattern>], TypePattern) {
        match self {
            Known::ThreadIdx(_)
            | Known::BlockIdx(_)
            | Known::BlockDim(_)
            | Known::GridDim(_)
            | Known::LaneId
            | Known::WarpId
            | Known::LaneMask(_) => (Kind::Position, &[], U32),
            Known::ActiveMask => (Kind::Warp, &[], U32),
            Known::Shuffle(_) => (
                Kind::Warp,
                &[Some(U32), None, Some(U32), Some(U32)],
                TypePattern::SameAs(1),
            ),
            Known::Vote(Vote::Ballot) => (Kind::Warp, &[Some(U32), Some(BOOL)], U32),
            Known::Vote(_) => (Kind::Warp, &[Some(U32), Some(BOOL)], BOOL),
            Known::Match(_) => (Kind::Warp, &[Some(U32), None], U32),
            Known::Reduce(_) => (Kind::Warp, &[Some(U32), None], TypePattern::SameAs(1)),
            Known::WarpSync => (Kind::Warp, &[Some(U32)], TypePattern::Unit),
            Known::TargetIsGpu => (Kind::Function, &[], BOOL),
            Known::TargetSm => (Kind::Function, &[], U32),
        }
    }

    /// Whether a row takes, gives and does what it has to, to be it.
    pub(crate) fn fits(self, row: &IntrinsicDef) -> bool {
        let (kind, params, result) = self.signature();
        let same_params = params.len() == row.params.len()
            && (params.iter().zip(row.params))
                .all(|(wanted, given)| wanted.is_none_or(|wanted| wanted == *given));
        let means = match row.meaning {
            Meaning::Position(_) => kind == Kind::Position && row.effects == Effects::None,
            Meaning::Warp(_) => {
                let synchronizes = row.effects == Effects::Synchronizes;
                let waits = synchronizes == (self == Known::WarpSync);
                kind == Kind::Warp && row.effects.meets() && waits
            }
            Meaning::Pure(_) => kind == Kind::Function && row.effects == Effects::None,
            Meaning::Body(_) | Meaning::Grid | Meaning::NamedBarrier { .. } => false,
        };
        // Another way to say it.
        let chosen = row.result == TypePattern::Chosen
            && result == TypePattern::SameAs(row.selecting() as u8);
        same_params && (row.result == result || chosen) && means
    }
}
