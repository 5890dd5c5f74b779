//! Groups of lanes of a warp: tiles, the warp itself, the lanes that came to a place.
//!
//! Who is in which:
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn groups(x: &[u32], out: &mut [u32]) {
//!     let i = global_id().x;
//!     let (warp, four) = (this_warp(), tile(4));
//!     let alike = labeled(four, x[i] % 2);
//!     let odd = ballot(FULL_MASK, x[i] % 2 == 1);
//!     out[i] = warp.size() + 100 * four.rank() + 1000 * alike.size();
//!     if x[i] % 2 == 1 {
//!         let (here, same) = (coalesced(), lanes_of(odd));
//!         if here.is_first() && same.mask() == odd && same.lane(0) == odd.trailing_zeros() {
//!             out[i] += 10_000 * same.size();
//!         }
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let (x, mut out) = (jit.upload(&[2, 3, 5, 7, 8, 9])?, jit.zeros::<u32>(6)?);
//! groups.launch(&jit, (1, 6), &x, &mut out)?;
//! assert_eq!(out.to_vec()?, [1006, 43106, 3206, 3306, 1006, 1106]);
//! # Ok(())
//! # }
//! ```
//!
//! Members hand each other values, and agree:
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn talk(x: &[u32], out: &mut [u32], votes: &mut [u32]) {
//!     let (i, tile) = (global_id().x, tile(4));
//!     let (v, first) = (x[i], tile.broadcast(x[i]));
//!     let (left, right) = (tile.shuffle_up(v, 1), tile.shuffle_down(v, 1));
//!     let (third, partner) = (tile.shuffle(v, 2), tile.shuffle_xor(v, 1));
//!     out[i] = left + 10 * right + 100 * third + 1000 * partner + 10_000 * first;
//!     tile.sync();
//!     let is_even = v % 2 == 0;
//!     if tile.any(is_even) && !tile.all(is_even) && tile.ballot(is_even) != 0 {
//!         votes[i] = tile.count(is_even) + 10 * tile.rank_where(is_even);
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let x = jit.upload(&[2, 3, 5, 8])?;
//! let (mut out, mut votes) = (jit.zeros::<u32>(4)?, jit.zeros::<u32>(4)?);
//! talk.launch(&jit, (1, 4), &x, &mut out, &mut votes)?;
//! assert_eq!(out.to_vec()?, [23532, 22552, 28583, 25585]);
//! assert_eq!(votes.to_vec()?, [2, 12, 12, 12]);
//! # Ok(())
//! # }
//! ```

use kiln_jit_core::ir::{Constant, TypeForm};
use kiln_jit_core::value::DeviceType;
use kiln_kernel_macro::device_fn;

use crate::plain::warp::{
    active_mask, ballot, lane_id, lanemask_eq, lanemask_lt, shuffle_idx, warp_all, warp_any,
    warp_sync,
};

/// Lanes of one warp that work together. Members have a rank, which counts from 0 in the order of lanes.
///
/// What takes a value or a `bool` is executed by all members together, as every operation of a warp is; between making
/// a group and the last use of it no member ends. Kernels hold groups in variables and pass them on; a buffer does
/// not hold them.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct LaneGroup {
    pub(super) members: u32,
    /// How many lanes lie between the first member and the one after the last, at most; a power of two. It is a constant
    /// where the group is made, so that rounds which it does not need are left out.
    pub(super) width: u32,
}

#[diagnostic::do_not_recommend]
impl DeviceType for LaneGroup {
    const FORM: &'static TypeForm =
        &TypeForm::structure("LaneGroup", &[("members", u32::FORM), ("width", u32::FORM)]);
    fn scalars(&self, out: &mut Vec<Constant>) {
        self.members.scalars(out);
        self.width.scalars(out);
    }
}

/// The warp of this thread: its lanes that have not ended (CUDA `tiled_partition<32>`). All of them come here together.
#[device_fn]
pub fn this_warp() -> LaneGroup {
    LaneGroup {
        members: ballot(u32::MAX, true),
        width: 32,
    }
}

/// The tile of this lane: the `size` lanes from a multiple of `size` on, which is 1, 2, 4, 8, 16 or 32 (CUDA
/// `tiled_partition`). Members are those of its lanes that there are and that have not ended, so the last tile of a
/// block may be smaller; all of them come here together.
///
/// Write the size as a number: rounds that a small tile does not need are then left out. A thread that asks for another
/// size ends with an error.
#[device_fn]
#[inline(always)]
pub fn tile(size: u32) -> LaneGroup {
    assert!(
        size.is_power_of_two() && size <= 32,
        "a tile has 1, 2, 4, 8, 16 or 32 lanes"
    );
    let lanes = (u32::MAX >> (32 - size)) << (lane_id() & !(size - 1));
    LaneGroup {
        members: ballot(lanes, true),
        width: size,
    }
}

/// The lanes that are here together (CUDA `coalesced_threads`), by [`active_mask`](crate::plain::warp::active_mask()):
/// which lanes those are is up to the device, and code has to be right for any.
#[device_fn]
pub fn coalesced() -> LaneGroup {
    LaneGroup {
        members: active_mask(),
        width: 32,
    }
}

/// The lanes of a mask that have not ended. All of them come here together.
#[device_fn]
pub fn lanes_of(mask: u32) -> LaneGroup {
    LaneGroup {
        members: ballot(mask, true),
        width: 32,
    }
}

/// The lanes of `group` for which `label` is the same (CUDA `labeled_partition` and `binary_partition`).
#[device_fn]
pub fn labeled<T: DeviceType>(group: LaneGroup, label: T) -> LaneGroup {
    LaneGroup {
        members: crate::plain::warp::match_any(group.members, label),
        width: group.width,
    }
}

#[device_fn]
impl LaneGroup {
    /// The first lanes of a warp, 1 to 32 of them, which have not ended.
    pub(super) fn of_first(lanes: u32) -> LaneGroup {
        LaneGroup {
            members: u32::MAX >> (32 - lanes),
            width: 32,
        }
    }

    /// The members, as a mask of lanes.
    pub fn mask(self) -> u32 {
        self.members
    }

    /// The number of members (CUDA `size`, `num_threads`).
    pub fn size(self) -> u32 {
        self.members.count_ones()
    }

    /// Which of the members this is (CUDA `thread_rank`).
    pub fn rank(self) -> u32 {
        (self.members & lanemask_lt()).count_ones()
    }

    /// Whether this is the first of the members (CUDA `invoke_one`).
    pub fn is_first(self) -> bool {
        self.members & lanemask_lt() == 0
    }

    /// Whether the members are lanes one after the other.
    pub(super) fn is_dense(self) -> bool {
        let from_first = self.members >> self.first();
        from_first & from_first.wrapping_add(1) == 0
    }

    /// The lane of the first member.
    pub(super) fn first(self) -> u32 {
        self.members.trailing_zeros() & 31
    }

    /// The lane of a member by its rank, which is below the size.
    pub fn lane(self, rank: u32) -> u32 {
        if self.is_dense() {
            return self.first() + rank;
        }
        // Half by half: is it among the lower ones?
        let mut lane = 0;
        let mut left = rank;
        for half in [16, 8, 4, 2, 1] {
            let lower = (self.members >> lane & ((1 << half) - 1)).count_ones();
            if left >= lower {
                left -= lower;
                lane += half;
            }
        }
        lane
    }

    /// Waits for all members, who see after it what they wrote before it (CUDA `sync`).
    pub fn sync(self) {
        warp_sync(self.members);
    }

    /// The value of the member with a rank (CUDA `shfl`), of any type that
    /// [`shuffle_idx`](crate::plain::warp::shuffle_idx()) takes; its own where there is no such member.
    pub fn shuffle<T: DeviceType>(self, value: T, rank: u32) -> T {
        let is_there = rank < self.size();
        let lane = if is_there { self.lane(rank) } else { lane_id() };
        shuffle_idx(self.members, value, lane, 32)
    }

    /// The value of the member `delta` ranks below (CUDA `shfl_up`); its own where there is none.
    pub fn shuffle_up<T: DeviceType>(self, value: T, delta: u32) -> T {
        let rank = self.rank();
        self.shuffle(value, if delta <= rank { rank - delta } else { rank })
    }

    /// The value of the member `delta` ranks above (CUDA `shfl_down`); its own where there is none.
    pub fn shuffle_down<T: DeviceType>(self, value: T, delta: u32) -> T {
        let rank = self.rank();
        let is_there = delta < self.size() - rank;
        self.shuffle(value, if is_there { rank + delta } else { rank })
    }

    /// The value of the member with the rank `rank() ^ bits` (CUDA `shfl_xor`); its own where there is none.
    pub fn shuffle_xor<T: DeviceType>(self, value: T, bits: u32) -> T {
        self.shuffle(value, self.rank() ^ bits)
    }

    /// The value of the first member, for all.
    pub fn broadcast<T: DeviceType>(self, value: T) -> T {
        shuffle_idx(self.members, value, self.first(), 32)
    }

    /// Whether `predicate` is true for a member (CUDA `any`).
    pub fn any(self, predicate: bool) -> bool {
        warp_any(self.members, predicate)
    }

    /// Whether `predicate` is true for all members (CUDA `all`).
    pub fn all(self, predicate: bool) -> bool {
        warp_all(self.members, predicate)
    }

    /// For how many members `predicate` is true.
    pub fn count(self, predicate: bool) -> u32 {
        ballot(self.members, predicate).count_ones()
    }

    /// The members for which `predicate` is true, as a mask of lanes. CUDA's `ballot` of a group counts bits by rank
    /// instead.
    pub fn ballot(self, predicate: bool) -> u32 {
        ballot(self.members, predicate)
    }

    /// The rank among the members for which `predicate` is true, where it is; how many of them come before, elsewhere.
    pub fn rank_where(self, predicate: bool) -> u32 {
        (ballot(self.members, predicate) & lanemask_lt()).count_ones()
    }
}

/// The lane of the next member above, or 32 where there is none.
#[device_fn]
pub(super) fn next_above(members: u32) -> u32 {
    (members & !(lanemask_lt() | lanemask_eq())).trailing_zeros()
}

/// The lane of the next member below, or 32 where there is none.
#[device_fn]
pub(super) fn next_below(members: u32) -> u32 {
    let below = members & lanemask_lt();
    if below == 0 {
        32
    } else {
        31 - below.leading_zeros()
    }
}
