//! What bounds on type parameters mean: the operations that a kernel can do with a `T`.
//!
//! The operations are in supertraits of their own, [`NumOps`] and so on: a bound brings them for `T`, and
//! importing `Num` does not make `1.min(2)` ambiguous. Those that are methods of the chapters' tables are in
//! [`SignedOps`], [`FloatOps`] and [`IntOps`].
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
//!
//! Constants and conversions of a type parameter:
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[device_fn]
//! fn mean<T: Num>(a: T, b: T) -> T {
//!     let low = a.min(b);
//!     low + (a.max(b) - low) / T::from_i32(2)
//! }
//!
//! #[device_fn]
//! fn halved<T: Float>(x: T) -> T {
//!     x * T::from_f64(0.5)
//! }
//!
//! #[kernel]
//! fn halves<T: Num>(x: &mut [T], share: &mut [f32]) {
//!     let i = global_id().x;
//!     if i < x.len() {
//!         share[i] = halved(x[i].cast::<f32>());
//!         x[i] = mean(x[i], T::ONE);
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let (mut x, mut share) = (jit.upload(&[9i32, 4])?, jit.zeros(2)?);
//! halves.launch(&jit, (1, 32), &mut x, &mut share)?;
//! assert_eq!(x.to_vec()?, [5, 2]);
//! assert_eq!(share.to_vec()?, [4.5, 2.0]);
//! assert_eq!(mean(1.0f64, 2.0), 1.5);
//! # Ok(())
//! # }
//! ```

use std::fmt;
use std::iter::{Product, Sum};
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Rem, RemAssign, Sub, SubAssign};

use kiln_jit_core::front::macros::Param;
use kiln_jit_core::rounding;
use kiln_jit_core::value::DeviceType;

pub use crate::integer::IntOps;
pub use crate::math::FloatOps;
pub use crate::number::SignedOps;

/// The numbers that kernels know: nobody adds one.
mod sealed {
    pub trait Number {}
}

/// A number: `i8` .. `u64`, `usize`, `f16`, `bf16`, `f32`, `f64`.
pub trait Num: NumOps + sealed::Number {}

/// An integer.
pub trait Int: Num + IntOps + fmt::LowerHex + fmt::UpperHex + fmt::Octal + fmt::Binary {}

/// A floating-point number.
pub trait Float: Num + FloatOps + fmt::LowerExp + fmt::UpperExp {}

/// What can be done with a [`Num`].
pub trait NumOps:
    DeviceType
    + fmt::Display
    + fmt::Debug
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
    + Sum
    + for<'a> Sum<&'a Self>
    + Product
    + for<'a> Product<&'a Self>
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
    #[doc(hidden)]
    fn to_f64(self) -> f64;
    /// The number as `as` converts it to an `i128`.
    #[doc(hidden)]
    fn to_i128(self) -> i128;
    /// Whether numbers of this type have a fraction.
    #[doc(hidden)]
    const IS_FLOAT: bool;
    /// The number as `as` converts it from an `i128`.
    #[doc(hidden)]
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

macro_rules! ints {
    ($($t:ty)*) => {$(
        impl sealed::Number for $t {}
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
    )*};
}
ints! { i8 i16 i32 i64 isize u8 u16 u32 u64 usize }

macro_rules! floats {
    ($($t:ty, $one:expr, $from_f64:expr, $from_int:expr;)*) => {$(
        impl sealed::Number for $t {}
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
    )*};
}
floats! {
    f32, (0.0, 1.0), |n: f64| n as f32, |n: i128| n as f32;
    f64, (0.0, 1.0), |n: f64| n, |n: i128| n as f64;
    half::f16, (half::f16::ZERO, half::f16::ONE),
        rounding::f16_from_f64, rounding::f16_from_int;
    half::bf16, (half::bf16::ZERO, half::bf16::ONE),
        rounding::bf16_from_f64, rounding::bf16_from_int;
}

// A type parameter meets every bound while the function it belongs to is described; its own bound
// decides what the IR allows. Nothing here is called.
impl<const INDEX: usize> sealed::Number for Param<INDEX> {}
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
