//! Operations of a warp: 32 threads that exchange values without memory (CUDA guide, "Warp Vote
//! Functions", "Warp Match Functions", "Warp Reduce Functions", "Warp Shuffle Functions"; PTX ISA,
//! "shfl.sync", "vote.sync", "match.sync", "redux.sync", "activemask", "bar.warp.sync").
//!
//! A warp is a run of 32 threads of a block in linear order, x fastest; the last one may be shorter.
//! A thread's lane is its number in its warp. Except for [`Warp::active_mask`] every operation that
//! involves other lanes takes a member mask, a `u32` with a bit for each lane:
//!
//! - A lane that executes the operation must be in its own mask.
//! - All lanes of the mask that have not ended come to the same operation, at the same place of the
//!   kernel, with the same mask; each waits for the others. Lanes that have ended, or that a short
//!   last warp does not have, do not count: [`FULL_MASK`] always stands for all that are left.
//! - Lanes that branch apart use masks of their own: in `if c { .. }` it is the mask
//!   `ballot(FULL_MASK, c)`, computed before the branch.
//!
//! The interpreter ends a launch that breaks these rules with an error; a GPU may give any result
//! or wait for ever. Only [`Warp::warp_sync`] orders memory.
//!
//! The sum of each warp, in five steps that bring all lanes the same result. `#[kernel]` functions call
//! the functions of [`plain::warp`](crate::plain::warp); the methods here are for the builder.
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn warp_sums(x: &[f32], sums: &mut [f32]) {
//!     let i = global_id().x;
//!     // All lanes come to the shuffles, those behind the end with a zero.
//!     let mut sum = if i < x.len() { x[i] } else { 0.0 };
//!     for lanes in [16, 8, 4, 2, 1] {
//!         sum += shuffle_xor(FULL_MASK, sum, lanes, 32);
//!     }
//!     if lane_id() == 0 {
//!         sums[i / 32] = sum;
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let x = jit.upload(&[1.0; 50])?;
//! let mut sums = jit.zeros(2)?;
//! warp_sums.launch(&jit, (1, 64), &x, &mut sums)?;
//! assert_eq!(sums.to_vec()?, [32.0, 18.0]);
//! # Ok(())
//! # }
//! ```
//!
//! | file | subject |
//! |---|---|
//! | `warp/rows` | the rows |
//! | `warp/meaning` | what they mean |

mod meaning;
mod rows;

use kiln_jit_core::build::{IntoVal, KernelBuilder, Val};
use kiln_jit_core::ir::Type;

pub use rows::ROWS;
use rows::Row;

/// The member mask of a whole warp.
pub const FULL_MASK: u32 = u32::MAX;

/// A row applied to a mask and more arguments.
#[track_caller]
fn masked<'k>(
    k: &'k KernelBuilder,
    row: Row,
    mask: impl IntoVal<'k>,
    arguments: &[Val<'k>],
) -> Val<'k> {
    let mut all = vec![mask.into_val(k, Some(Type::U32))];
    all.extend_from_slice(arguments);
    k.intrinsic(&ROWS[row as usize], &all)
}

#[track_caller]
fn voted<'k>(
    k: &'k KernelBuilder,
    row: Row,
    mask: impl IntoVal<'k>,
    predicate: impl IntoVal<'k>,
) -> Val<'k> {
    let predicate = predicate.into_val(k, Some(Type::BOOL));
    masked(k, row, mask, &[predicate])
}

#[track_caller]
fn shuffled<'k>(
    k: &'k KernelBuilder,
    row: Row,
    mask: impl IntoVal<'k>,
    value: impl IntoVal<'k>,
    source: impl IntoVal<'k>,
    width: u32,
) -> Val<'k> {
    let value = value.into_val(k, None);
    if !width.is_power_of_two() || width > 32 {
        let message = format!(
            "`{}` takes a width of 1, 2, 4, 8, 16 or 32 lanes, not {width}",
            ROWS[row as usize].name
        );
        return k.intrinsic_error(message, value.ty());
    }
    let source = source.into_val(k, Some(Type::U32));
    let width = width.into_val(k, Some(Type::U32));
    masked(k, row, mask, &[value, source, width])
}

macro_rules! registers {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[track_caller]
        fn $name(&self) -> Val<'_> {
            self.builder().intrinsic(&ROWS[Row::$name as usize], &[])
        }
    )*};
}

macro_rules! shuffles {
    ($($(#[$doc:meta])* $name:ident($source:ident);)*) => {$(
        $(#[$doc])*
        #[track_caller]
        fn $name<'k>(
            &'k self,
            mask: impl IntoVal<'k>,
            value: impl IntoVal<'k>,
            $source: impl IntoVal<'k>,
            width: u32,
        ) -> Val<'k> {
            shuffled(self.builder(), Row::$name, mask, value, $source, width)
        }
    )*};
}

macro_rules! votes {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[track_caller]
        fn $name<'k>(&'k self, mask: impl IntoVal<'k>, predicate: impl IntoVal<'k>) -> Val<'k> {
            voted(self.builder(), Row::$name, mask, predicate)
        }
    )*};
}

macro_rules! of_values {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[track_caller]
        fn $name<'k>(&'k self, mask: impl IntoVal<'k>, value: impl IntoVal<'k>) -> Val<'k> {
            let value = value.into_val(self.builder(), None);
            masked(self.builder(), Row::$name, mask, &[value])
        }
    )*};
}

/// Warp operations, as methods of the builder. The module documentation has the rules for member
/// masks. A wrong type or width is an error of the builder at the line that calls it.
pub trait Warp {
    /// The builder the instructions go to.
    fn builder(&self) -> &KernelBuilder;

    registers! {
        /// The lane of the thread in its warp, `u32` below 32.
        lane_id;
        /// The number of the thread's warp in its block, `u32` below 32: its linear index divided
        /// by 32. (PTX's `%warpid` may change while a thread runs; this does not.)
        warp_id;
        /// The lanes before this one, as a mask.
        lanemask_lt;
        /// The lanes before this one and itself, as a mask.
        lanemask_le;
        /// The lanes after this one, as a mask.
        lanemask_gt;
        /// The lanes after this one and itself, as a mask.
        lanemask_ge;
        /// This lane, as a mask.
        lanemask_eq;
        /// The lanes that execute this together, as a mask that contains this lane. Which lanes
        /// those are is up to the backend (CUDA guide, "Warp Vote Functions"): the CPU brings as
        /// many together as can come here. Code must be right for any of them; a mask that is to
        /// hold certain lanes is a [`Warp::ballot`] before the branch.
        active_mask;
    }

    shuffles! {
        /// The value of lane `lane % width` of each segment of `width` lanes: each lane gets it
        /// from its own segment. All scalar types.
        ///
        /// `width` is 1, 2, 4, 8, 16 or 32. Reading a lane that takes no part is undefined on a
        /// GPU; the CPU gives the reader its own value.
        shuffle_idx(lane);
        /// The value of the lane `delta` below; in the first `delta` lanes of each segment of
        /// `width` lanes their own value. `delta` counts modulo 32. Types, `width` and lanes that
        /// take no part are as in [`Warp::shuffle_idx`].
        shuffle_up(delta);
        /// The value of the lane `delta` above; in the last `delta` lanes of each segment of
        /// `width` lanes their own value. `delta` counts modulo 32. Types, `width` and lanes that
        /// take no part are as in [`Warp::shuffle_idx`].
        shuffle_down(delta);
        /// The value of the lane `lane ^ lanes`. If that is in a later segment of `width` lanes,
        /// the lane's own value; earlier segments can be read. `lanes` counts modulo 32. Types,
        /// `width` and lanes that take no part are as in [`Warp::shuffle_idx`].
        shuffle_xor(lanes);
    }

    votes! {
        /// The lanes of the mask where `predicate` is true, as a mask; the same in all of them.
        ballot;
        /// Whether `predicate` is true in all lanes of the mask.
        warp_all;
        /// Whether `predicate` is true in a lane of the mask.
        warp_any;
        /// Whether `predicate` is the same in all lanes of the mask.
        warp_uniform;
    }

    of_values! {
        /// The lanes of the mask whose `value` has the same bits as this lane's, as a mask. All
        /// scalar types.
        match_any;
        /// The lanes of the mask that have not ended, as a mask, if their values have the same
        /// bits; else 0. All scalar types.
        match_all;
        /// The sum over the lanes of the mask, modulo 2^32; `i32` or `u32`, as all reductions.
        ///
        /// One instruction from sm_80 on, a loop of shuffles before.
        warp_reduce_add;
        /// The smallest value of the lanes of the mask; `i32` or `u32`.
        warp_reduce_min;
        /// The largest value of the lanes of the mask; `i32` or `u32`.
        warp_reduce_max;
        /// The bits that are set in all lanes of the mask; `i32` or `u32`.
        warp_reduce_and;
        /// The bits that are set in a lane of the mask; `i32` or `u32`.
        warp_reduce_or;
        /// The bits that are set in an odd number of lanes of the mask; `i32` or `u32`.
        warp_reduce_xor;
    }

    /// Waits for the lanes of the mask. What they wrote to memory before, they see after it.
    #[track_caller]
    fn warp_sync<'k>(&'k self, mask: impl IntoVal<'k>) {
        masked(self.builder(), Row::warp_sync, mask, &[]);
    }
}

impl Warp for KernelBuilder {
    fn builder(&self) -> &KernelBuilder {
        self
    }
}
