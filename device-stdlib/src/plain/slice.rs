//! Methods of slices and arrays in `#[kernel]` functions, those of Rust. Where Rust panics the thread ends, and the launch
//! is an error that tells the index and the length, as for indexing.
//!
//! ```
//! use kiln::prelude::*;
//!
//! /// Sums up neighbours from both ends, and turns the upper half around.
//! #[kernel]
//! fn fold(x: &mut [f32], ends: &mut [f32]) {
//!     let (low, high) = x.split_at_mut(4);
//!     high.reverse();
//!     low.swap(0, 3);
//!     low[1..3].copy_from_slice(&high[..2]);
//!     for i in 0..ends.len() {
//!         let left = low.get(i).copied().unwrap_or(0.0);
//!         ends[i] = left + high.get(i).copied().unwrap_or(0.0);
//!     }
//!     let is_turned = high.starts_with(&[7.0]) && high.ends_with(&[6.0, 5.0]);
//!     if let (Some(first), true) = (ends.first_mut(), high.contains(&5.0) && is_turned) {
//!         *first += 0.5;
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let mut x = jit.upload(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])?;
//! let mut ends = jit.zeros(5)?;
//! fold.launch(&jit, (1, 1), &mut x, &mut ends)?;
//! assert_eq!(x.to_vec()?, [4.0, 7.0, 6.0, 1.0, 7.0, 6.0, 5.0]);
//! assert_eq!(ends.to_vec()?, [11.5, 13.0, 11.0, 1.0, 0.0]);
//! # Ok(())
//! # }
//! ```

use kiln_description::method_name;
use kiln_jit_core::front::macros::{End, Front, InlineCall, Operand, Receiver};
use kiln_jit_core::ir::Type;
use kiln_jit_core::value::DeviceType;

use super::resolve::{InlineMethod, Method};

/// Methods of slices, which arrays have, too: how they take their receiver, whether they change it, and what they build.
macro_rules! methods {
    ($(
        $how:ident, $changes:literal:
        $name:ident = |$front:ident, $receiver:ident $(, $arg:ident)*| $value:expr;
    )*) => {$(
        methods! { @of [T] [T], $how, $changes: $name = |$front, $receiver $(, $arg)*| $value }
        methods! {
            @of [T: DeviceType, const N: usize] [T; N], $how, $changes:
            $name = |$front, $receiver $(, $arg)*| $value
        }
    )*};
    (
        @of [$($generics:tt)*] $t:ty, $how:ident, $changes:literal:
        $name:ident = |$front:ident, $receiver:ident $(, $arg:ident)*| $value:expr
    ) => {
        #[diagnostic::do_not_recommend]
        impl<$($generics)*> Method<{ method_name(stringify!($name)) }, ()> for $t {
            const RECEIVER: Receiver = Receiver::$how;
            const CHANGES: bool = $changes;

            fn call<'k>($front: Front<'k>, _: &[Type], args: &[Operand<'k>]) -> Operand<'k> {
                match args {
                    &[$receiver $(, $arg)*] => $value,
                    // rustc has counted them.
                    _ => $front.unit(),
                }
            }
        }
    };
}

methods! {
    Unread, false: get = |_front, x, i| x.get(i, false);
    Unread, false: get_mut = |_front, x, i| x.get(i, true);
    Unread, false: first = |_front, x| x.end(End::First, false);
    Unread, false: first_mut = |_front, x| x.end(End::First, true);
    Unread, false: last = |_front, x| x.end(End::Last, false);
    Unread, false: last_mut = |_front, x| x.end(End::Last, true);
    Unread, false: split_first = |_front, x| x.split_end(End::First, false);
    Unread, false: split_first_mut = |_front, x| x.split_end(End::First, true);
    Unread, false: split_last = |_front, x| x.split_end(End::Last, false);
    Unread, false: split_last_mut = |_front, x| x.split_end(End::Last, true);
    Unread, false: split_at = |_front, x, middle| x.split_at(middle, false);
    Unread, false: split_at_mut = |_front, x, middle| x.split_at(middle, true);
    Unread, false: split_at_checked = |_front, x, middle| x.split_at_checked(middle, false);
    Unread, false: split_at_mut_checked = |_front, x, middle| x.split_at_checked(middle, true);
    Unread, false: as_slice = |_front, x| x.whole_slice(false);
    Unread, false: as_mut_slice = |_front, x| x.whole_slice(true);
    Unread, false: contains = |_front, x, value| x.contains(value);
    Unread, false: starts_with = |_front, x, other| x.has_at_end(End::First, other);
    Unread, false: ends_with = |_front, x, other| x.has_at_end(End::Last, other);
    Mutable, true: swap = |front, x, i, j| {
        x.swap(i, j);
        front.unit()
    };
    Mutable, true: reverse = |front, x| {
        x.reverse();
        front.unit()
    };
    Mutable, true: fill = |front, x, value| {
        x.fill(value);
        front.unit()
    };
    Mutable, true: copy_from_slice = |front, x, other| {
        x.copy_from(other, "copy_from_slice");
        front.unit()
    };
    Mutable, true: clone_from_slice = |front, x, other| {
        x.copy_from(other, "clone_from_slice");
        front.unit()
    };
}

#[diagnostic::do_not_recommend]
impl<T, const N: usize> InlineMethod<{ method_name("map") }, ()> for [T; N] {
    fn call_inline<'k>(front: Front<'k>, call: &InlineCall<'_, 'k>) -> Operand<'k> {
        match (call.args, call.closures) {
            (&[array], &[f]) => array.map_array(f),
            _ => front.unit(),
        }
    }
}
