//! Methods of `Option` in `#[kernel]` functions; `Some`, `None` and patterns with them are the language's. They are
//! those of Rust, by whose names rustc finds them.
//!
//! ```
//! use kiln::prelude::*;
//!
//! /// The first number of a slice that is at least as large as a limit, and where it is.
//! #[device_fn]
//! fn first_from(numbers: &[f32], limit: f32) -> Option<(usize, f32)> {
//!     for (i, &number) in numbers.iter().enumerate() {
//!         if number >= limit {
//!             return Some((i, number));
//!         }
//!     }
//!     None
//! }
//!
//! #[kernel]
//! fn search(numbers: &[f32], limits: &[f32], at: &mut [i32], above: &mut [f32]) {
//!     let i = global_id().x;
//!     let Some(&limit) = limits.get(i) else {
//!         return;
//!     };
//!     let found = first_from(numbers, limit);
//!     at[i] = found.map_or(-1, |(at, _)| at as i32);
//!     if let Some((_, number)) = found {
//!         above[i] = number - limit;
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let (numbers, limits) = (jit.upload(&[1.0, 5.0, 3.0])?, jit.upload(&[2.0, 9.0])?);
//! let (mut at, mut above) = (jit.zeros(2)?, jit.zeros(2)?);
//! search.launch(&jit, (1, 32), &numbers, &limits, &mut at, &mut above)?;
//! assert_eq!((at.to_vec()?, above.to_vec()?), (vec![1, -1], vec![3.0, 0.0]));
//! # Ok(())
//! # }
//! ```

use kiln_description::method_name;
use kiln_jit_core::front::macros::{Front, InlineCall, Operand, Receiver};
use kiln_jit_core::ir::Type;
use kiln_jit_core::value::DeviceType;

use super::resolve::{InlineMethod, Method, methods};

/// What to say where an argument is no closure that is seen.
pub(super) const WHERE_CLOSURES_STAND: &str =
    "write this closure in the call, or name it before by `let f = |x| ..;`";

/// Methods with closures, as [`methods`] without: what else they take stands before them.
macro_rules! with_closures {
    ($(
        [$($generics:tt)*] $t:ty:
        $name:ident = |$front:ident, $receiver:ident $(, $arg:ident)*; $($closure:ident),+| $value:expr;
    )*) => {$(
        #[diagnostic::do_not_recommend]
        impl<$($generics)*> InlineMethod<{ method_name(stringify!($name)) }, ()> for $t {
            fn call_inline<'k>($front: Front<'k>, call: &InlineCall<'_, 'k>) -> Operand<'k> {
                match (call.args, call.closures) {
                    (&[$receiver $(, $arg)*], &[$($closure),+]) => $value,
                    _ => $front.refuse($crate::plain::option::WHERE_CLOSURES_STAND),
                }
            }
        }
    )*};
}

pub(super) use with_closures;

methods! {
    [] bool, Value, false: then_some = |front, x, value| front.some_if(x, || value);
    [T] Option<T>, Unread, false: is_some = |_front, x| x.is_some();
    [T] Option<T>, Unread, false: is_none = |front, x| front.not(x.is_some());
    [T] Option<T>, Value, false: unwrap = |front, x| {
        front.unwrap(x, "called `Option::unwrap()` on a `None` value")
    };
    [T] Option<T>, Value, false: expect = |front, x| front.unwrap(x, front.builder().written_text());
    [T] Option<T>, Value, false: unwrap_or = |front, x, other| {
        front.either(x.is_some(), || x.some_value(), || other)
    };
    [T: DeviceType + Default] Option<T>, Value, false: unwrap_or_default = |front, x| {
        let default = front.constant_of(T::default());
        front.either(x.is_some(), || x.some_value(), || default)
    };
    [T] Option<T>, Value, false: or = |front, x, other| front.either(x.is_some(), || x, || other);
    [T] Option<T>, Value, false: and = |front, x, other| front.option_if(x.is_some(), || other);
    [T] Option<T>, Value, false: xor = |front, x, other| {
        let one = front.either(x.is_some(), || x, || other);
        let differ = x.is_some().read().ne(other.is_some().read());
        front.option_if(front.value(differ), || one)
    };
    [T] Option<T>, Value, false: zip = |front, x, other| {
        let both = front.and(x.is_some(), || other.is_some());
        front.some_if(both, || front.tuple(&[x.some_value(), other.some_value()]))
    };
    [T] Option<&T>, Value, false: copied = |front, x| front.some_if(x.is_some(), || x.some_value().target());
    [T] Option<&T>, Value, false: cloned = |front, x| front.some_if(x.is_some(), || x.some_value().target());
    [T] Option<&mut T>, Value, false: copied = |front, x| front.some_if(x.is_some(), || x.some_value().target());
    [T] Option<&mut T>, Value, false: cloned = |front, x| front.some_if(x.is_some(), || x.some_value().target());
    [T] Option<Option<T>>, Value, false: flatten = |front, x| front.option_if(x.is_some(), || x.some_value());
    [T] Option<T>, Shared, false: as_ref = |front, x| front.option_of_part(x, false);
    [T] Option<T>, Mutable, true: as_mut = |front, x| front.option_of_part(x, true);
    [T] Option<T>, Mutable, true: take = |front, x| {
        front.replaced(x, |before| front.none(before.ty()))
    };
    [T] Option<T>, Mutable, true: replace = |front, x, value| {
        front.replaced(x, |_| front.some(value))
    };
}

with_closures! {
    [] bool: then = |front, x; f| front.some_if(x, || f(&[]));
    [T] Option<T>: map = |front, x; f| front.some_if(x.is_some(), || f(&[x.some_value()]));
    [T] Option<T>: and_then = |front, x; f| front.option_if(x.is_some(), || f(&[x.some_value()]));
    [T] Option<T>: map_or = |front, x, other; f| front.either(x.is_some(), || f(&[x.some_value()]), || other);
    [T] Option<T>: map_or_else = |front, x; g, f| front.either(x.is_some(), || f(&[x.some_value()]), || g(&[]));
    [T] Option<T>: unwrap_or_else = |front, x; f| front.either(x.is_some(), || x.some_value(), || f(&[]));
    [T] Option<T>: or_else = |front, x; f| front.either(x.is_some(), || x, || f(&[]));
    [T] Option<T>: is_some_and = |front, x; f| front.and(x.is_some(), || f(&[x.some_value()]));
    [T] Option<T>: is_none_or = |front, x; f| front.or(front.not(x.is_some()), || f(&[x.some_value()]));
    [T] Option<T>: filter = |front, x; f| {
        let holds = front.and(x.is_some(), || f(&[x.some_value().address(false)]));
        front.option_if(holds, || x)
    };
}
