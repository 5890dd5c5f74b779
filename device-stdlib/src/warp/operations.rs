//! The table of warp operations. [`crate::warp`] has their rules; on the host a warp is one thread.
//!
//! Lanes that branch apart take a mask of their own, from before the branch:
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn sum_of_odd(x: &mut [u32]) {
//!     let i = global_id().x;
//!     let is_odd = i < x.len() && x[i] % 2 == 1;
//!     let odd = ballot(FULL_MASK, is_odd);
//!     if is_odd {
//!         x[i] = warp_reduce_add(odd, x[i]);
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let mut x = jit.upload(&[1, 2, 3, 4, 5])?;
//! sum_of_odd.launch(&jit, (1, 32), &mut x)?;
//! assert_eq!(x.to_vec()?, [9, 2, 9, 4, 9]);
//! # Ok(())
//! # }
//! ```
//!
//! Who a lane is, and which lanes are where:
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn number_the_odd(x: &[u32], out: &mut [u32]) {
//!     let i = global_id().x;
//!     let odd = ballot(FULL_MASK, x[i] % 2 == 1);
//!     let before = (odd & lanemask_lt()).count_ones();
//!     let others = odd & !lanemask_eq();
//!     let up_to = (odd & lanemask_le()).count_ones();
//!     let from = (odd & lanemask_ge()).count_ones();
//!     let after = (odd & lanemask_gt()).count_ones();
//!     if x[i] % 2 == 1 && active_mask() & lanemask_eq() != 0 {
//!         let lane = lane_id() + 32 * warp_id();
//!         out[i] = before + 100 * (up_to - before) + 1000 * (from - after) + others.count_ones() - lane / 32;
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let x = jit.upload(&(0..32).collect::<Vec<u32>>())?;
//! let mut out = jit.zeros(32)?;
//! number_the_odd.launch(&jit, (1, 32), &x, &mut out)?;
//! assert_eq!(out.to_vec()?[..6], [0, 1115, 0, 1116, 0, 1117]);
//! # Ok(())
//! # }
//! ```
//!
//! Lanes read each other's values, and agree:
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn neighbours(x: &[u32], out: &mut [u32]) {
//!     let i = global_id().x;
//!     let v = x[i];
//!     let first = shuffle_idx(FULL_MASK, v, 0, 32);
//!     let left = shuffle_up(FULL_MASK, v, 1, 32);
//!     let right = shuffle_down(FULL_MASK, v, 1, 32);
//!     let partner = shuffle_xor(FULL_MASK, v, 1, 32);
//!     out[i] = first + 2 * left + 3 * right + 4 * partner;
//! }
//!
//! #[kernel]
//! fn agree(x: &[u32], out: &mut [u32]) {
//!     let v = x[global_id().x];
//!     let all = warp_all(FULL_MASK, v < 32);
//!     let any = warp_any(FULL_MASK, v == 31);
//!     let uniform = warp_uniform(FULL_MASK, v < 32);
//!     let same_parity = match_any(FULL_MASK, v % 2);
//!     let all_equal = match_all(FULL_MASK, v / 32);
//!     let largest = warp_reduce_max(FULL_MASK, v) - warp_reduce_min(FULL_MASK, v);
//!     let bits = warp_reduce_or(FULL_MASK, v) - warp_reduce_and(FULL_MASK, v);
//!     let parity = warp_reduce_xor(FULL_MASK, v);
//!     warp_sync(FULL_MASK);
//!     if elect(FULL_MASK) && all && any && uniform {
//!         out[0] = same_parity;
//!         out[1] = all_equal;
//!         out[2] = largest;
//!         out[3] = bits + parity;
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let x = jit.upload(&(0..32).collect::<Vec<u32>>())?;
//! let mut out = jit.zeros(32)?;
//! neighbours.launch(&jit, (1, 32), &x, &mut out)?;
//! assert_eq!(out.to_vec()?[..2], [7, 6]);
//! agree.launch(&jit, (1, 32), &x, &mut out)?;
//! assert_eq!(out.to_vec()?[..4], [0x5555_5555, u32::MAX, 31, 31]);
//! # Ok(())
//! # }
//! ```
//!
//! In the builder they are methods of `k`, by the trait [`Warp`]:
//!
//! ```
//! use kiln::prelude::*;
//!
//! # fn main() -> kiln::Result<()> {
//! let sum = Kernel::build("sum", |k| {
//!     let x = k.slice_mut("x", k.ty::<u32>());
//!     let i = k.global_id().x();
//!     x.at(i).set(k.warp_reduce_add(FULL_MASK, x.at(i)));
//! })?;
//! let jit = Jit::new()?;
//! let mut x = jit.upload(&[2u32; 32])?;
//! jit.launch(&sum, 1, 32, args!(&mut x))?;
//! assert_eq!(x.to_vec()?, [64; 32]);
//! # Ok(())
//! # }
//! ```

use kiln_jit_core::ir::{
    CompareOp, Effects, Known, Match, Meaning, Module, Reduction, Scalar, Shuffle, Type,
    Uniformity, Vote,
};
use kiln_jit_core::value::DeviceType;
use kiln_kernel_macro::device_fn;

use super::cells::{WARP_ID, match_cells, one, reduce_cells, register, shuffle_cells, vote_cells};
use super::meaning;
use crate::intrinsic::function;
use crate::plain::number::Int;
use crate::table::operations;

/// The width of a shuffle.
fn segment(width: Option<i128>) -> Result<(), String> {
    match width {
        Some(1 | 2 | 4 | 8 | 16 | 32) => Ok(()),
        Some(other) => Err(format!(
            "a width of 1, 2, 4, 8, 16 or 32 lanes, not {other}"
        )),
        None => Err("a literal for its width, like `32`".to_owned()),
    }
}

/// The meaning of [`elect()`].
#[device_fn]
fn elected(mask: u32) -> bool {
    ballot(mask, true).trailing_zeros() == lane_id()
}

fn elected_body(_: Scalar) -> Option<Module> {
    function::<elected>("warp.elect", &[("mask", &|_| Type::U32)])
}

operations! {
    /// Warp operations, as methods of the builder. The module documentation has the rules for member
    /// masks. A wrong type or width is an error of the builder at the line that calls it.
    builder Warp;

    /// The lane of the thread in its warp, below 32.
    fn lane_id() -> u32 { 0 }
        = row("warp.lane_id", Meaning::Position(|at| at.lane().into()))
        .known_as(Known::LaneId)
        .with_uniformity(Uniformity::Lane)
        .with_result_below(32)
        .with_cells(&register("llvm.nvvm.read.ptx.sreg.laneid"));

    /// The number of the thread's warp in its block, below 32: its linear index divided by 32. (PTX's
    /// `%warpid` may change while a thread runs; this does not.)
    fn warp_id() -> u32 { 0 }
        = row("warp.warp_id", Meaning::Position(|at| at.warp().into()))
        .known_as(Known::WarpId)
        .with_uniformity(Uniformity::Warp)
        .with_result_below(32)
        .with_cells(&WARP_ID);

    /// The lanes before this one, as a mask.
    fn lanemask_lt() -> u32 { 0 }
        = row("warp.lanemask_lt", Meaning::Position(|at| ((1u32 << at.lane()) - 1).into()))
        .known_as(Known::LaneMask(CompareOp::Lt))
        .with_uniformity(Uniformity::Lane)
        .with_cells(&register("llvm.nvvm.read.ptx.sreg.lanemask.lt"));

    /// The lanes before this one and itself, as a mask.
    fn lanemask_le() -> u32 { 1 }
        = row("warp.lanemask_le", Meaning::Position(|at| (u32::MAX >> (31 - at.lane())).into()))
        .known_as(Known::LaneMask(CompareOp::Le))
        .with_uniformity(Uniformity::Lane)
        .with_cells(&register("llvm.nvvm.read.ptx.sreg.lanemask.le"));

    /// The lanes after this one, as a mask.
    fn lanemask_gt() -> u32 { !1 }
        = row("warp.lanemask_gt", Meaning::Position(|at| (!(u32::MAX >> (31 - at.lane()))).into()))
        .known_as(Known::LaneMask(CompareOp::Gt))
        .with_uniformity(Uniformity::Lane)
        .with_cells(&register("llvm.nvvm.read.ptx.sreg.lanemask.gt"));

    /// The lanes after this one and itself, as a mask.
    fn lanemask_ge() -> u32 { !0 }
        = row("warp.lanemask_ge", Meaning::Position(|at| (u32::MAX << at.lane()).into()))
        .known_as(Known::LaneMask(CompareOp::Ge))
        .with_uniformity(Uniformity::Lane)
        .with_cells(&register("llvm.nvvm.read.ptx.sreg.lanemask.ge"));

    /// This lane, as a mask.
    fn lanemask_eq() -> u32 { 1 }
        = row("warp.lanemask_eq", Meaning::Position(|at| (1u32 << at.lane()).into()))
        .known_as(Known::LaneMask(CompareOp::Eq))
        .with_uniformity(Uniformity::Lane)
        .with_cells(&register("llvm.nvvm.read.ptx.sreg.lanemask.eq"));

    /// The lanes that execute this together, as a mask that contains this lane. Which lanes those are is up
    /// to the backend (CUDA guide, "Warp Vote Functions"): the CPU brings as many together as can come here.
    /// Code must be right for any of them; a mask that is to hold certain lanes is a [`ballot()`] before the
    /// branch.
    fn active_mask() -> u32 { 1 }
        = row("warp.active_mask", Meaning::Warp(meaning::active_mask))
        .known_as(Known::ActiveMask)
        .with_uniformity(Uniformity::Warp)
        .with_effects(Effects::Convergent)
        .with_cells(&one("activemask.b32 $0;", "=r"));

    /// The value of lane `lane % width` of each segment of `width` lanes: each lane gets it from its own
    /// segment.
    ///
    /// Values are numbers, `bool`s, and structs, tuples, arrays and vectors of at most 1024 of them: each number is
    /// shuffled by itself, one of 64 bits as two halves.
    ///
    /// `width`, a literal, is 1, 2, 4, 8, 16 or 32. Reading a lane that takes no part is undefined on a GPU;
    /// the CPU gives the reader its own value.
    fn shuffle_idx<T: DeviceType = each>(mask: u32, value: T, lane: u32, width: u32) -> T
        where width is segment
    { let _ = (mask, lane, width); value }
        = row("warp.shuffle_idx", Meaning::Warp(meaning::shuffle_idx))
        .known_as(Known::Shuffle(Shuffle::Idx))
        .with_uniformity(Uniformity::Lane)
        .with_effects(Effects::Convergent)
        .with_cells(&shuffle_cells!("idx", "31"));

    /// The value of the lane `delta` below; in the first `delta` lanes of each segment of `width` lanes their
    /// own value. `delta` counts modulo 32. Types, `width` and lanes that take no part are as in [`shuffle_idx()`].
    fn shuffle_up<T: DeviceType = each>(mask: u32, value: T, delta: u32, width: u32) -> T
        where width is segment
    { let _ = (mask, delta, width); value }
        = row("warp.shuffle_up", Meaning::Warp(meaning::shuffle_up))
        .known_as(Known::Shuffle(Shuffle::Up))
        .with_uniformity(Uniformity::Lane)
        .with_effects(Effects::Convergent)
        .with_cells(&shuffle_cells!("up", "0"));

    /// The value of the lane `delta` above; in the last `delta` lanes of each segment of `width` lanes their
    /// own value. `delta` counts modulo 32. Types, `width` and lanes that take no part are as in [`shuffle_idx()`].
    fn shuffle_down<T: DeviceType = each>(mask: u32, value: T, delta: u32, width: u32) -> T
        where width is segment
    { let _ = (mask, delta, width); value }
        = row("warp.shuffle_down", Meaning::Warp(meaning::shuffle_down))
        .known_as(Known::Shuffle(Shuffle::Down))
        .with_uniformity(Uniformity::Lane)
        .with_effects(Effects::Convergent)
        .with_cells(&shuffle_cells!("down", "31"));

    /// The value of the lane `lane_id() ^ lanes`. If that is in a later segment of `width` lanes, the lane's
    /// own value; earlier segments can be read. `lanes` counts modulo 32. Types, `width` and lanes that take no part are as in [`shuffle_idx()`].
    fn shuffle_xor<T: DeviceType = each>(mask: u32, value: T, lanes: u32, width: u32) -> T
        where width is segment
    { let _ = (mask, lanes, width); value }
        = row("warp.shuffle_xor", Meaning::Warp(meaning::shuffle_xor))
        .known_as(Known::Shuffle(Shuffle::Xor))
        .with_uniformity(Uniformity::Lane)
        .with_effects(Effects::Convergent)
        .with_cells(&shuffle_cells!("bfly", "31"));

    /// The lanes of the mask where `predicate` is true, as a mask; the same in all of them.
    fn ballot(mask: u32, predicate: bool) -> u32 { mask & u32::from(predicate) }
        = row("warp.ballot", Meaning::Warp(meaning::ballot))
        .known_as(Known::Vote(Vote::Ballot))
        .with_uniformity(Uniformity::Warp)
        .with_effects(Effects::Convergent)
        .with_cells(&one(
            "{ .reg .pred p; setp.ne.u32 p, $2, 0; vote.sync.ballot.b32 $0, p, $1; }",
            "=r,r,r",
        ));

    /// Whether `predicate` is true in all lanes of the mask.
    fn warp_all(mask: u32, predicate: bool) -> bool { let _ = mask; predicate }
        = row("warp.all", Meaning::Warp(meaning::all))
        .known_as(Known::Vote(Vote::All))
        .with_uniformity(Uniformity::Warp)
        .with_effects(Effects::Convergent)
        .with_cells(&vote_cells!("all"));

    /// Whether `predicate` is true in a lane of the mask.
    fn warp_any(mask: u32, predicate: bool) -> bool { let _ = mask; predicate }
        = row("warp.any", Meaning::Warp(meaning::any))
        .known_as(Known::Vote(Vote::Any))
        .with_uniformity(Uniformity::Warp)
        .with_effects(Effects::Convergent)
        .with_cells(&vote_cells!("any"));

    /// Whether `predicate` is the same in all lanes of the mask.
    fn warp_uniform(mask: u32, predicate: bool) -> bool { let _ = (mask, predicate); true }
        = row("warp.uniform", Meaning::Warp(meaning::uniform))
        .known_as(Known::Vote(Vote::Uniform))
        .with_uniformity(Uniformity::Warp)
        .with_effects(Effects::Convergent)
        .with_cells(&vote_cells!("uni"));

    /// Whether this is the lowest lane of the mask that has not ended: true in one lane of them.
    fn elect(mask: u32) -> bool { let _ = mask; true }
        = row("warp.elect", Meaning::Body(elected_body))
        .with_uniformity(Uniformity::Lane)
        .with_effects(Effects::Convergent);

    /// The lanes of the mask whose `value` has the same bits as this lane's, as a mask. All scalar types.
    fn match_any<T: DeviceType = any>(mask: u32, value: T) -> u32 { let _ = value; mask & 1 }
        = row("warp.match_any", Meaning::Warp(meaning::match_any))
        .known_as(Known::Match(Match::Any))
        .with_uniformity(Uniformity::Lane)
        .with_effects(Effects::Convergent)
        .with_cells(&match_cells!("any"));

    /// The lanes of the mask that have not ended, as a mask, if their values have the same bits; else 0. All
    /// scalar types.
    fn match_all<T: DeviceType = any>(mask: u32, value: T) -> u32 { let _ = value; mask & 1 }
        = row("warp.match_all", Meaning::Warp(meaning::match_all))
        .known_as(Known::Match(Match::All))
        .with_uniformity(Uniformity::Warp)
        .with_effects(Effects::Convergent)
        .with_cells(&match_cells!("all"));

    /// The sum over the lanes of the mask, modulo 2^32; `i32` or `u32`, as all reductions.
    ///
    /// One instruction from sm_80 on, a loop of shuffles before.
    fn warp_reduce_add<T: Int = [i32, u32]>(mask: u32, value: T) -> T { let _ = mask; value }
        = row("warp.reduce_add", Meaning::Warp(meaning::reduce_add))
        .known_as(Known::Reduce(Reduction::Add))
        .with_uniformity(Uniformity::Warp)
        .with_effects(Effects::Convergent)
        .with_cells(&reduce_cells!("add", "s32", "u32"));

    /// The smallest value of the lanes of the mask; `i32` or `u32`.
    fn warp_reduce_min<T: Int = [i32, u32]>(mask: u32, value: T) -> T { let _ = mask; value }
        = row("warp.reduce_min", Meaning::Warp(meaning::reduce_min))
        .known_as(Known::Reduce(Reduction::Min))
        .with_uniformity(Uniformity::Warp)
        .with_effects(Effects::Convergent)
        .with_cells(&reduce_cells!("min", "s32", "u32"));

    /// The largest value of the lanes of the mask; `i32` or `u32`.
    fn warp_reduce_max<T: Int = [i32, u32]>(mask: u32, value: T) -> T { let _ = mask; value }
        = row("warp.reduce_max", Meaning::Warp(meaning::reduce_max))
        .known_as(Known::Reduce(Reduction::Max))
        .with_uniformity(Uniformity::Warp)
        .with_effects(Effects::Convergent)
        .with_cells(&reduce_cells!("max", "s32", "u32"));

    /// The bits that are set in all lanes of the mask; `i32` or `u32`.
    fn warp_reduce_and<T: Int = [i32, u32]>(mask: u32, value: T) -> T { let _ = mask; value }
        = row("warp.reduce_and", Meaning::Warp(meaning::reduce_and))
        .known_as(Known::Reduce(Reduction::And))
        .with_uniformity(Uniformity::Warp)
        .with_effects(Effects::Convergent)
        .with_cells(&reduce_cells!("and", "b32", "b32"));

    /// The bits that are set in a lane of the mask; `i32` or `u32`.
    fn warp_reduce_or<T: Int = [i32, u32]>(mask: u32, value: T) -> T { let _ = mask; value }
        = row("warp.reduce_or", Meaning::Warp(meaning::reduce_or))
        .known_as(Known::Reduce(Reduction::Or))
        .with_uniformity(Uniformity::Warp)
        .with_effects(Effects::Convergent)
        .with_cells(&reduce_cells!("or", "b32", "b32"));

    /// The bits that are set in an odd number of lanes of the mask; `i32` or `u32`.
    fn warp_reduce_xor<T: Int = [i32, u32]>(mask: u32, value: T) -> T { let _ = mask; value }
        = row("warp.reduce_xor", Meaning::Warp(meaning::reduce_xor))
        .known_as(Known::Reduce(Reduction::Xor))
        .with_uniformity(Uniformity::Warp)
        .with_effects(Effects::Convergent)
        .with_cells(&reduce_cells!("xor", "b32", "b32"));

    /// Waits for the lanes of the mask. What they wrote to memory before, they see after it.
    fn warp_sync(mask: u32) { let _ = mask; }
        = row("warp.sync", Meaning::Warp(meaning::sync))
        .known_as(Known::WarpSync)
        .with_uniformity(Uniformity::Warp)
        .with_effects(Effects::Synchronizes)
        .with_cells(&one("bar.warp.sync $0;", "r,~{memory}"));
}
