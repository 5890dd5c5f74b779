//! Methods of `Result` in `#[kernel]` functions; `Ok`, `Err` and patterns with them are the language's, and `?` is in
//! device functions. They are those of Rust, by whose names rustc finds them.
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[derive(Copy, Clone, Debug, PartialEq, KernelType)]
//! #[repr(u32)]
//! enum Defect {
//!     Negative,
//!     Missing,
//! }
//!
//! #[device_fn]
//! fn root(x: f32) -> Result<f32, Defect> {
//!     if x < 0.0 {
//!         return Err(Defect::Negative);
//!     }
//!     Ok(x.sqrt())
//! }
//!
//! #[device_fn]
//! fn root_at(x: &[f32], i: usize) -> Result<f32, Defect> {
//!     let x = x.get(i).ok_or(Defect::Missing)?;
//!     Ok(root(*x)? + 1.0)
//! }
//!
//! #[kernel]
//! fn roots(x: &[f32], out: &mut [f32]) {
//!     let i = global_id().x;
//!     if i < out.len() {
//!         out[i] = match root_at(x, i) {
//!             Ok(root) => root,
//!             Err(Defect::Negative) => -1.0,
//!             Err(Defect::Missing) => -2.0,
//!         };
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let (x, mut out) = (jit.upload(&[4.0, -4.0])?, jit.zeros(3)?);
//! roots.launch(&jit, (1, 32), &x, &mut out)?;
//! assert_eq!(out.to_vec()?, [3.0, -1.0, -2.0]);
//! # Ok(())
//! # }
//! ```

use kiln_description::method_name;
use kiln_jit_core::front::macros::{Front, InlineCall, Operand, Receiver, TypeOf};
use kiln_jit_core::ir::Type;
use kiln_jit_core::value::DeviceType;

use super::option::with_closures;
use super::resolve::{InlineMethod, Method, methods};

/// What `?` can be written behind in a function of kernels that returns `R`: its errors are those of the function.
#[diagnostic::on_unimplemented(
    message = "`?` of kernels makes no error of another type",
    label = "the function returns other errors",
    note = "write `.map_err(|error| ..)?`; an option becomes a result by `.ok_or(..)?`, a result one by `.ok()?`"
)]
pub trait Fails<R> {}

impl<T, U> Fails<Option<U>> for Option<T> {}
impl<T, U, E> Fails<Result<U, E>> for Result<T, E> {}

/// What `?` is written behind, as it is.
#[doc(hidden)]
pub const fn question<R, X: Fails<R>>(_: TypeOf<R>, value: X) -> X {
    value
}

/// Ends the thread with a message where a condition does not hold.
fn required<'k>(front: Front<'k>, holds: Operand<'k>, message: &str) {
    front.builder().assert(holds, message);
}

methods! {
    [T, E] Result<T, E>, Unread, false: is_ok = |_front, x| x.is_ok();
    [T, E] Result<T, E>, Unread, false: is_err = |front, x| front.not(x.is_ok());
    [T, E] Result<T, E>, Value, false: ok = |front, x| front.some_if(x.is_ok(), || x.ok_value());
    [T, E] Result<T, E>, Value, false: err = |front, x| front.some_if(front.not(x.is_ok()), || x.err_value());
    [T, E] Result<T, E>, Value, false: unwrap = |front, x| {
        required(front, x.is_ok(), "called `Result::unwrap()` on an `Err` value");
        x.ok_value()
    };
    [T, E] Result<T, E>, Value, false: expect = |front, x| {
        required(front, x.is_ok(), front.builder().written_text());
        x.ok_value()
    };
    [T, E] Result<T, E>, Value, false: unwrap_err = |front, x| {
        required(front, front.not(x.is_ok()), "called `Result::unwrap_err()` on an `Ok` value");
        x.err_value()
    };
    [T, E] Result<T, E>, Value, false: unwrap_or = |front, x, other| {
        front.either(x.is_ok(), || x.ok_value(), || other)
    };
    [T: DeviceType + Default, E] Result<T, E>, Value, false: unwrap_or_default = |front, x| {
        let default = front.constant_of(T::default());
        front.either(x.is_ok(), || x.ok_value(), || default)
    };
    [T, E] Result<T, E>, Value, false: and = |front, x, other| {
        front.either_of_type(x.is_ok(), || other, |ty| front.err(ty, x.err_value()))
    };
    [T, E] Result<T, E>, Value, false: or = |front, x, other| {
        front.either_of_type(front.not(x.is_ok()), || other, |ty| front.ok(ty, x.ok_value()))
    };
    [T, E] Result<&T, E>, Value, false: copied = |front, x| {
        let value = || x.ok_value().target();
        let ok = || {
            let value = value();
            front.ok(front.result_type(value.ty(), x.err_value().ty()), value)
        };
        front.either_of_type(x.is_ok(), ok, |ty| front.err(ty, x.err_value()))
    };
    [T] Option<T>, Value, false: ok_or = |front, x, error| {
        let ty = front.result_type(x.some_value().ty(), error.ty());
        front.either(x.is_some(), || front.ok(ty, x.some_value()), || front.err(ty, error))
    };
}

with_closures! {
    [T, E] Result<T, E>: map = |front, x; f| {
        let ok = || {
            let value = f(&[x.ok_value()]);
            front.ok(front.result_type(value.ty(), x.err_value().ty()), value)
        };
        front.either_of_type(x.is_ok(), ok, |ty| front.err(ty, x.err_value()))
    };
    [T, E] Result<T, E>: map_err = |front, x; f| {
        let err = || {
            let error = f(&[x.err_value()]);
            front.err(front.result_type(x.ok_value().ty(), error.ty()), error)
        };
        front.either_of_type(front.not(x.is_ok()), err, |ty| front.ok(ty, x.ok_value()))
    };
    [T, E] Result<T, E>: and_then = |front, x; f| {
        front.either_of_type(x.is_ok(), || f(&[x.ok_value()]), |ty| front.err(ty, x.err_value()))
    };
    [T, E] Result<T, E>: or_else = |front, x; f| {
        front.either_of_type(front.not(x.is_ok()), || f(&[x.err_value()]), |ty| front.ok(ty, x.ok_value()))
    };
    [T, E] Result<T, E>: map_or = |front, x, other; f| front.either(x.is_ok(), || f(&[x.ok_value()]), || other);
    [T, E] Result<T, E>: map_or_else = |front, x; g, f| {
        front.either(x.is_ok(), || f(&[x.ok_value()]), || g(&[x.err_value()]))
    };
    [T, E] Result<T, E>: unwrap_or_else = |front, x; f| {
        front.either(x.is_ok(), || x.ok_value(), || f(&[x.err_value()]))
    };
    [T, E] Result<T, E>: is_ok_and = |front, x; f| front.and(x.is_ok(), || f(&[x.ok_value()]));
    [T, E] Result<T, E>: is_err_and = |front, x; f| front.and(front.not(x.is_ok()), || f(&[x.err_value()]));
    [T] Option<T>: ok_or_else = |front, x; f| {
        let err = || {
            let error = f(&[]);
            front.err(front.result_type(x.some_value().ty(), error.ty()), error)
        };
        front.either_of_type(front.not(x.is_some()), err, |ty| front.ok(ty, x.some_value()))
    };
}
