//! Operations of a warp; [`crate::warp`] has their rules. On the host a warp is one thread.
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

use kiln_jit_core::value::DeviceType;

use super::functions;
use super::number::Int;
use crate::warp::Warp as _;

macro_rules! registers {
    ($($(#[$doc:meta])* $name:ident = $host:expr;)*) => {
        functions! {$(
            $(#[$doc])*
            fn $name() -> u32 { $host } => |front, _, _| front.value(front.builder().$name());
        )*}
    };
}
registers! {
    /// The lane of the thread in its warp.
    lane_id = 0;
    /// The number of the warp in its block.
    warp_id = 0;
    /// The lanes before this one, as a mask.
    lanemask_lt = 0;
    /// The lanes before this one and itself, as a mask.
    lanemask_le = 1;
    /// The lanes after this one, as a mask.
    lanemask_gt = !1;
    /// The lanes after this one and itself, as a mask.
    lanemask_ge = !0;
    /// This lane, as a mask.
    lanemask_eq = 1;
    /// The lanes that execute this together, as a mask.
    active_mask = 1;
}

macro_rules! shuffles {
    ($($(#[$doc:meta])* $name:ident($source:ident);)*) => {
        functions! {$(
            $(#[$doc])*
            ///
            /// `width`, a literal, is 1, 2, 4, 8, 16 or 32.
            fn $name<T: DeviceType>(mask: u32, value: T, $source: u32, width: u32) -> T {
                let _ = (mask, $source, width);
                value
            } => |front, _, [mask, value, source, width]| {
                match width.known_int().and_then(|n| u32::try_from(n).ok()) {
                    Some(width) => {
                        front.value(front.builder().$name(*mask, *value, *source, width))
                    }
                    None => front.refuse("the width of a shuffle is a literal, like `32`"),
                }
            };
        )*}
    };
}
shuffles! {
    /// The value of lane `lane % width` of each segment of `width` lanes.
    shuffle_idx(lane);
    /// The value of the lane `delta` below, within its segment.
    shuffle_up(delta);
    /// The value of the lane `delta` above, within its segment.
    shuffle_down(delta);
    /// The value of the lane `lane_id() ^ lanes`.
    shuffle_xor(lanes);
}

functions! {
    /// The lanes of the mask where `predicate` is true, as a mask.
    fn ballot(mask: u32, predicate: bool) -> u32 { mask & u32::from(predicate) }
    => |front, _, [mask, predicate]| front.value(front.builder().ballot(*mask, *predicate));
    /// Whether `predicate` is true in all lanes of the mask.
    fn warp_all(mask: u32, predicate: bool) -> bool { let _ = mask; predicate }
    => |front, _, [mask, predicate]| front.value(front.builder().warp_all(*mask, *predicate));
    /// Whether `predicate` is true in a lane of the mask.
    fn warp_any(mask: u32, predicate: bool) -> bool { let _ = mask; predicate }
    => |front, _, [mask, predicate]| front.value(front.builder().warp_any(*mask, *predicate));
    /// Whether `predicate` is the same in all lanes of the mask.
    fn warp_uniform(mask: u32, predicate: bool) -> bool { let _ = (mask, predicate); true }
    => |front, _, [mask, predicate]| front.value(front.builder().warp_uniform(*mask, *predicate));
    /// The lanes of the mask whose `value` has the same bits as this lane's, as a mask.
    fn match_any<T: DeviceType>(mask: u32, value: T) -> u32 { let _ = value; mask & 1 }
    => |front, _, [mask, value]| front.value(front.builder().match_any(*mask, *value));
    /// The lanes of the mask that have not ended, as a mask, if their values have the same bits;
    /// else 0.
    fn match_all<T: DeviceType>(mask: u32, value: T) -> u32 { let _ = value; mask & 1 }
    => |front, _, [mask, value]| front.value(front.builder().match_all(*mask, *value));
    /// Waits for the lanes of the mask. What they wrote to memory before, they see after it.
    fn warp_sync(mask: u32) { let _ = mask; } => |front, _, [mask]| {
        front.builder().warp_sync(*mask);
        front.unit()
    };
}

macro_rules! reductions {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        functions! {$(
            $(#[$doc])*
            ///
            /// `i32` or `u32`.
            fn $name<T: Int>(mask: u32, value: T) -> T { let _ = mask; value }
            => |front, _, [mask, value]| front.value(front.builder().$name(*mask, *value));
        )*}
    };
}
reductions! {
    /// The sum over the lanes of the mask, modulo 2^32.
    warp_reduce_add;
    /// The smallest value of the lanes of the mask.
    warp_reduce_min;
    /// The largest value of the lanes of the mask.
    warp_reduce_max;
    /// The bits that are set in all lanes of the mask.
    warp_reduce_and;
    /// The bits that are set in a lane of the mask.
    warp_reduce_or;
    /// The bits that are set in an odd number of lanes of the mask.
    warp_reduce_xor;
}
