//! Methods of numbers of more than one kind, as values of the builder and as methods in `#[kernel]`
//! functions. What a bound on a type parameter brings is in [`plain::number`](crate::plain::number).
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[device_fn]
//! fn soft<T: Float>(x: T, threshold: T) -> T {
//!     (x.abs() - threshold).max(T::ZERO) * x.signum()
//! }
//!
//! #[kernel]
//! fn shrink(x: &mut [f32], steps: &mut [i32]) {
//!     let i = global_id().x;
//!     if i < x.len() {
//!         x[i] = soft(x[i], 1.0).min(4.0);
//!         steps[i] = steps[i].clamp(-2, 2);
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let (mut x, mut steps) = (jit.upload(&[-3.0, 0.5])?, jit.upload(&[7, -1])?);
//! shrink.launch(&jit, (1, 32), &mut x, &mut steps)?;
//! assert_eq!(x.to_vec()?, [-2.0, 0.0]);
//! assert_eq!(steps.to_vec()?, [2, -1]);
//! # Ok(())
//! # }
//! ```
//!
//! Integers and floats are divided, and averaged, by methods of one name:
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn wrap(angles: &mut [f32], turns: &mut [f32], days: &mut [i32], middle: &mut [i64]) {
//!     turns[0] = angles[0].div_euclid(360.0);
//!     angles[0] = angles[0].rem_euclid(360.0);
//!     days[0] = days[0].rem_euclid(7) + 10 * days[0].div_euclid(7);
//!     middle[0] = middle[0].midpoint(-8);
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let (mut angles, mut turns) = (jit.upload(&[-30.0])?, jit.zeros(1)?);
//! let (mut days, mut middle) = (jit.upload(&[-3])?, jit.upload(&[i64::MIN])?);
//! wrap.launch(&jit, (1, 1), &mut angles, &mut turns, &mut days, &mut middle)?;
//! assert_eq!((angles.to_vec()?[0], turns.to_vec()?[0]), (330.0, -1.0));
//! assert_eq!(days.to_vec()?, [-6]);
//! assert_eq!(middle.to_vec()?, [i64::MIN / 2 - 4]);
//! # Ok(())
//! # }
//! ```

use kiln_jit_core::build::Val;
use kiln_jit_core::front::macros::Front;
use kiln_jit_core::ir::IntrinsicDef;

use crate::integer::{division, unknown};
use crate::math::Math as _;
use crate::math::rows::instruction;
use crate::plain::number::NumOps;
use crate::table::{builds, methods};

/// Methods of all numbers.
mod all {
    use super::*;

    methods! {
        host NumOps;
        /// Methods of numbers, as methods of values.
        builder Number;
        all {
            /// The smaller one; the number if the other is NaN.
            fn min(self, other: Self) -> Self = builds!(|x, y| x.min(y));
            /// The larger one; the number if the other is NaN.
            fn max(self, other: Self) -> Self = builds!(|x, y| x.max(y));
            /// The number, or the limit that it is beyond; NaN stays. Where `high` is below `low`, for
            /// which Rust panics, it is `high`.
            fn clamp(self, low: Self, high: Self) -> Self = builds!(|x, low, high| {
                let raised = x.lt(low).select(low, x);
                high.lt(raised).select(high, raised)
            });
            /// The remainder that is never negative: what is left of the number without a multiple of the magnitude of
            /// `by`. Of integers `by` 0 it is 0, of floats NaN.
            fn rem_euclid(self, by: Self) -> Self = builds!(|x, by| match is_integer(x) {
                true => unknown(x).unwrap_or_else(|| division::rem_euclid(x, by)),
                false => float_rem_euclid(x, by),
            });
            /// The quotient that leaves a remainder which is never negative. Of integers `by` 0 it is the number.
            fn div_euclid(self, by: Self) -> Self = builds!(|x, by| match is_integer(x) {
                true => unknown(x).unwrap_or_else(|| division::div_euclid(x, by)),
                false => float_div_euclid(x, by),
            });
            /// The middle of two numbers, without overflow: of integers rounded towards zero, of floats as a number is.
            fn midpoint(self, other: Self) -> Self = builds!(|x, y| match is_integer(x) {
                true => unknown(x).unwrap_or_else(|| division::midpoint(x, y)),
                false => float_midpoint(x, y),
            });
        }
    }
}

/// A method that is an instruction for floats, and for integers what a function builds.
macro_rules! either {
    (@row $name:ident($($arg:ident),*), ($($float:tt)*), $integer:path) => {
        instruction! { @row $name($($arg),*), $($float)* }
    };
    (@build $row:path, ($x:ident), ($($float:tt)*), $integer:path) => {
        match is_integer($x) {
            true => $integer($x),
            false => instruction! { @build $row, ($x), $($float)* },
        }
    };
}

/// Methods of numbers with a sign.
mod signed {
    use super::*;

    methods! {
        /// What can be done with numbers that have a sign: floats and signed integers.
        host SignedOps: [Sized] on [f32, f64, half::f16, half::bf16, i8, i16, i32, i64, isize];
        /// Methods of floats and signed integers, as methods of values.
        builder Signed;
        all {
            /// The absolute value; the smallest integer is its own, for which Rust may panic.
            fn abs(self) -> Self = either!(("math.abs", "llvm.fabs"), absolute);
            /// Of an integer -1, 0 or 1, of a float 1 with its sign, or NaN.
            fn signum(self) -> Self = builds!(|x| signum(x));
        }
    }
}

pub use all::Number;
pub use signed::{Signed, SignedOps};

/// The rows of intrinsics that methods of this chapter have.
pub(crate) fn rows() -> impl Iterator<Item = &'static IntrinsicDef> {
    all::rows().chain(signed::rows())
}

fn is_integer(x: Val<'_>) -> bool {
    Front::new(x.builder()).is_integer(x.ty())
}

/// The absolute value of an integer.
#[track_caller]
fn absolute(x: Val<'_>) -> Val<'_> {
    x.lt(x.builder().zero(x.ty())).select(-x, x)
}

#[track_caller]
fn float_rem_euclid<'k>(x: Val<'k>, by: Val<'k>) -> Val<'k> {
    let rest = x % by;
    let is_negative = rest.lt(x.builder().lit(x.ty(), 0.0));
    is_negative.select(rest + by.abs(), rest)
}

#[track_caller]
fn float_div_euclid<'k>(x: Val<'k>, by: Val<'k>) -> Val<'k> {
    let [zero, one] = [0.0, 1.0].map(|n| x.builder().lit(x.ty(), n));
    let quotient = (x / by).trunc();
    let below = by.gt(zero).select(quotient - one, quotient + one);
    (x % by).lt(zero).select(below, quotient)
}

/// The sum halved, or, where that overflows, the sum of the halves: what they lose of a subnormal one is lost beside the
/// other. Neither sum is one with a product of the caller's.
#[track_caller]
fn float_midpoint<'k>(x: Val<'k>, y: Val<'k>) -> Val<'k> {
    let [half, one] = [0.5, 1.0].map(|n| x.builder().lit(x.ty(), n));
    let sum = x.mul_add(one, y);
    let far = x.mul_add(half, y * half);
    sum.is_finite().select(sum * half, far)
}

#[track_caller]
fn signum(x: Val<'_>) -> Val<'_> {
    let b = x.builder();
    if !is_integer(x) {
        return x.ne(x).select(x, b.lit(x.ty(), 1.0).copysign(x));
    }
    let (zero, one) = (b.zero(x.ty()), b.lit(x.ty(), 1));
    let negative = x.lt(zero).select(-one, zero);
    zero.lt(x).select(one, negative)
}
