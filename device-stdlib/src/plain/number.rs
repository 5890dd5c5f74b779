//! What bounds on type parameters mean: the operations that a kernel can do with a `T`.
//!
//! The operations are in supertraits of their own, [`number::NumOps`](NumOps) and so on: a bound
//! brings them for `T`, and importing `Num` does not make `1.min(2)` ambiguous.
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[device_fn]
//! fn softplus<T: Float>(x: T) -> T {
//!     (T::ONE + x.exp()).ln()
//! }
//!
//! #[device_fn]
//! fn gcd<T: Int>(mut a: T, mut b: T) -> T {
//!     while b != T::ZERO {
//!         (a, b) = (b, a % b);
//!     }
//!     a
//! }
//!
//! #[kernel]
//! fn apply<T: Float, U: Int>(x: &mut [T], n: &mut [U], m: U) {
//!     let i = global_id().x;
//!     if i < x.len() {
//!         x[i] = softplus(x[i]);
//!         n[i] = gcd(n[i], m);
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let (mut x, mut n) = (jit.upload(&[0.0f32])?, jit.upload(&[84u64])?);
//! apply.launch(&jit, (1, 32), &mut x, &mut n, 36)?;
//! assert!((x.to_vec()?[0] - 2f32.ln()).abs() < 1e-6);
//! assert_eq!(n.to_vec()?, [12]);
//! # Ok(())
//! # }
//! ```

use std::ops::{
    Add, AddAssign, BitAnd, BitAndAssign, BitOr, BitOrAssign, BitXor, BitXorAssign, Div, DivAssign,
    Mul, MulAssign, Neg, Not, Rem, RemAssign, Shl, ShlAssign, Shr, ShrAssign, Sub, SubAssign,
};

use kiln_jit_core::front::Param;
use kiln_jit_core::rounding;
use kiln_jit_core::value::DeviceType;

/// A number: `i8` .. `u64`, `usize`, `f16`, `bf16`, `f32`, `f64`.
pub trait Num: NumOps {}

/// An integer.
pub trait Int: Num + IntOps {}

/// A floating-point number.
pub trait Float: Num + FloatOps {}

/// What can be done with a [`Num`].
pub trait NumOps:
    DeviceType
    + PartialEq
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Rem<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + DivAssign
    + RemAssign
{
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// The number as `as` converts it.
    fn from_i32(number: i32) -> Self;
    /// The number as `as` converts it.
    fn from_f64(number: f64) -> Self;
    /// The number as `as` converts it to an `f64`.
    fn to_f64(self) -> f64;
    /// The number as `as` converts it to an `i128`.
    fn to_i128(self) -> i128;
    /// Whether numbers of this type have a fraction.
    const IS_FLOAT: bool;
    /// The number as `as` converts it from an `i128`.
    fn from_i128(number: i128) -> Self;
    /// The number as another type, with the meaning of `as`.
    fn cast<U: NumOps>(self) -> U {
        match Self::IS_FLOAT {
            true => U::from_f64(self.to_f64()),
            false => U::from_i128(self.to_i128()),
        }
    }
    /// The smaller one; the number if the other is NaN.
    fn min(self, other: Self) -> Self;
    /// The larger one; the number if the other is NaN.
    fn max(self, other: Self) -> Self;
}

/// What can be done with an [`Int`] besides.
pub trait IntOps:
    Sized
    + Eq
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + BitAndAssign
    + BitOrAssign
    + BitXorAssign
    + Not<Output = Self>
    + Shl<u32, Output = Self>
    + Shr<u32, Output = Self>
    + ShlAssign<u32>
    + ShrAssign<u32>
{
    /// The sum, modulo 2 to the width.
    fn wrapping_add(self, other: Self) -> Self;
    /// The difference, modulo 2 to the width.
    fn wrapping_sub(self, other: Self) -> Self;
    /// The product, modulo 2 to the width.
    fn wrapping_mul(self, other: Self) -> Self;
}

/// What can be done with a [`Float`] besides.
pub trait FloatOps: Sized + Neg<Output = Self> {
    /// The square root, correctly rounded.
    fn sqrt(self) -> Self;
    /// The absolute value.
    fn abs(self) -> Self;
    /// The largest integer that is not greater.
    fn floor(self) -> Self;
    /// The smallest integer that is not less.
    fn ceil(self) -> Self;
    /// The integer next to it towards zero.
    fn trunc(self) -> Self;
    /// The nearest integer, ties to even.
    fn round_ties_even(self) -> Self;
    /// `self * factor + addend` with one rounding.
    fn mul_add(self, factor: Self, addend: Self) -> Self;
    /// The power, by repeated squaring.
    fn powi(self, exponent: i32) -> Self;
    /// `1 / self`.
    fn recip(self) -> Self;
    /// `e` to this power.
    ///
    /// This and the following are the platform's on the host, where the last bits may differ from
    /// those of a kernel; [`crate::math`] has the errors that those have.
    fn exp(self) -> Self;
    /// 2 to this power.
    fn exp2(self) -> Self;
    /// The natural logarithm.
    fn ln(self) -> Self;
    /// The logarithm to base 2.
    fn log2(self) -> Self;
    /// The logarithm to base 10.
    fn log10(self) -> Self;
    /// The sine of an angle in radians.
    fn sin(self) -> Self;
    /// The cosine of an angle in radians.
    fn cos(self) -> Self;
    /// The hyperbolic tangent.
    fn tanh(self) -> Self;
    /// The power with an exponent of the same type.
    fn powf(self, exponent: Self) -> Self;
}

macro_rules! ints {
    ($($t:ty)*) => {$(
        impl Num for $t {}
        impl Int for $t {}
        impl NumOps for $t {
            const ZERO: Self = 0;
            const ONE: Self = 1;
            const IS_FLOAT: bool = false;
            fn from_i32(number: i32) -> Self { number as $t }
            fn from_f64(number: f64) -> Self { number as $t }
            fn to_f64(self) -> f64 { self as f64 }
            fn to_i128(self) -> i128 { self as i128 }
            fn from_i128(number: i128) -> Self { number as $t }
            fn min(self, other: Self) -> Self { Ord::min(self, other) }
            fn max(self, other: Self) -> Self { Ord::max(self, other) }
        }
        impl IntOps for $t {
            fn wrapping_add(self, other: Self) -> Self { <$t>::wrapping_add(self, other) }
            fn wrapping_sub(self, other: Self) -> Self { <$t>::wrapping_sub(self, other) }
            fn wrapping_mul(self, other: Self) -> Self { <$t>::wrapping_mul(self, other) }
        }
    )*};
}
ints! { i8 i16 i32 i64 isize u8 u16 u32 u64 usize }

/// A power as kernels compute it.
fn power<T: Mul<Output = T> + Div<Output = T> + Copy>(x: T, one: T, exponent: i32) -> T {
    let mut rest = exponent.unsigned_abs();
    let (mut square, mut power) = (x, None);
    while rest > 0 {
        if rest & 1 == 1 {
            power = Some(power.map_or(square, |p| p * square));
        }
        rest >>= 1;
        if rest > 0 {
            square = square * square;
        }
    }
    let power = power.unwrap_or(one);
    if exponent < 0 { one / power } else { power }
}

macro_rules! floats {
    ($($t:ty, $one:expr, |$wide:ident: $w:ty| $narrow:expr, $from_f64:expr, $from_int:expr;)*) => {$(
        impl Num for $t {}
        impl Float for $t {}
        impl NumOps for $t {
            const ZERO: Self = $one.0;
            const ONE: Self = $one.1;
            const IS_FLOAT: bool = true;
            fn from_i32(number: i32) -> Self { Self::from_f64(number.into()) }
            fn from_f64(number: f64) -> Self { $from_f64(number) }
            fn to_f64(self) -> f64 { self.into() }
            fn to_i128(self) -> i128 { f64::from(self) as i128 }
            fn from_i128(number: i128) -> Self { $from_int(number) }
            fn min(self, other: Self) -> Self { <$t>::min(self, other) }
            fn max(self, other: Self) -> Self { <$t>::max(self, other) }
        }
        impl FloatOps for $t {
            fn sqrt(self) -> Self { let $wide = <$w>::from(self).sqrt(); $narrow }
            fn abs(self) -> Self { let $wide = <$w>::from(self).abs(); $narrow }
            fn floor(self) -> Self { let $wide = <$w>::from(self).floor(); $narrow }
            fn ceil(self) -> Self { let $wide = <$w>::from(self).ceil(); $narrow }
            fn trunc(self) -> Self { let $wide = <$w>::from(self).trunc(); $narrow }
            fn round_ties_even(self) -> Self {
                let $wide = <$w>::from(self).round_ties_even();
                $narrow
            }
            fn mul_add(self, factor: Self, addend: Self) -> Self {
                let $wide = <$w>::from(self).mul_add(factor.into(), addend.into());
                $narrow
            }
            fn powi(self, exponent: i32) -> Self { power(self, $one.1, exponent) }
            fn recip(self) -> Self { $one.1 / self }
            fn exp(self) -> Self { let $wide = <$w>::from(self).exp(); $narrow }
            fn exp2(self) -> Self { let $wide = <$w>::from(self).exp2(); $narrow }
            fn ln(self) -> Self { let $wide = <$w>::from(self).ln(); $narrow }
            fn log2(self) -> Self { let $wide = <$w>::from(self).log2(); $narrow }
            fn log10(self) -> Self { let $wide = <$w>::from(self).log10(); $narrow }
            fn sin(self) -> Self { let $wide = <$w>::from(self).sin(); $narrow }
            fn cos(self) -> Self { let $wide = <$w>::from(self).cos(); $narrow }
            fn tanh(self) -> Self { let $wide = <$w>::from(self).tanh(); $narrow }
            fn powf(self, exponent: Self) -> Self {
                let $wide = <$w>::from(self).powf(exponent.into());
                $narrow
            }
        }
    )*};
}
floats! {
    f32, (0.0, 1.0), |x: f32| x, |n: f64| n as f32, |n: i128| n as f32;
    f64, (0.0, 1.0), |x: f64| x, |n: f64| n, |n: i128| n as f64;
    half::f16, (half::f16::ZERO, half::f16::ONE), |x: f32| half::f16::from_f32(x),
        rounding::f16_from_f64, rounding::f16_from_int;
    half::bf16, (half::bf16::ZERO, half::bf16::ONE), |x: f32| half::bf16::from_f32(x),
        rounding::bf16_from_f64, rounding::bf16_from_int;
}

// A type parameter meets every bound while the function it belongs to is described; its own bound
// decides what the IR allows. Nothing here is called.
impl<const INDEX: usize> Num for Param<INDEX> {}
impl<const INDEX: usize> Int for Param<INDEX> {}
impl<const INDEX: usize> Float for Param<INDEX> {}

impl<const INDEX: usize> NumOps for Param<INDEX> {
    const ZERO: Self = Param::ZERO;
    const ONE: Self = Param::ONE;
    const IS_FLOAT: bool = false;
    fn from_i32(_: i32) -> Self {
        Param::ZERO
    }
    fn from_f64(_: f64) -> Self {
        Param::ZERO
    }
    fn to_f64(self) -> f64 {
        0.0
    }
    fn to_i128(self) -> i128 {
        0
    }
    fn from_i128(_: i128) -> Self {
        Param::ZERO
    }
    fn min(self, _: Self) -> Self {
        self
    }
    fn max(self, _: Self) -> Self {
        self
    }
}

impl<const INDEX: usize> IntOps for Param<INDEX> {
    fn wrapping_add(self, _: Self) -> Self {
        self
    }
    fn wrapping_sub(self, _: Self) -> Self {
        self
    }
    fn wrapping_mul(self, _: Self) -> Self {
        self
    }
}

impl<const INDEX: usize> FloatOps for Param<INDEX> {
    fn sqrt(self) -> Self {
        self
    }
    fn abs(self) -> Self {
        self
    }
    fn floor(self) -> Self {
        self
    }
    fn ceil(self) -> Self {
        self
    }
    fn trunc(self) -> Self {
        self
    }
    fn round_ties_even(self) -> Self {
        self
    }
    fn mul_add(self, _: Self, _: Self) -> Self {
        self
    }
    fn powi(self, _: i32) -> Self {
        self
    }
    fn recip(self) -> Self {
        self
    }
    fn exp(self) -> Self {
        self
    }
    fn exp2(self) -> Self {
        self
    }
    fn ln(self) -> Self {
        self
    }
    fn log2(self) -> Self {
        self
    }
    fn log10(self) -> Self {
        self
    }
    fn sin(self) -> Self {
        self
    }
    fn cos(self) -> Self {
        self
    }
    fn tanh(self) -> Self {
        self
    }
    fn powf(self, _: Self) -> Self {
        self
    }
}
