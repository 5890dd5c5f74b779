//! Methods of integers, as values of the builder and as methods in `#[kernel]` functions. For every input
//! the result is Rust's; where Rust panics, it is what the operators give: overflow wraps, a divisor of 0
//! is a 1.
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[device_fn]
//! fn mixed<T: Int>(x: T, by: T) -> T {
//!     x.wrapping_mul(by) ^ x.wrapping_pow(3)
//! }
//!
//! #[kernel]
//! fn hash(x: &mut [u32], bits: &mut [u32]) {
//!     let i = global_id().x;
//!     if i < x.len() {
//!         bits[i] = x[i].count_ones();
//!         x[i] = mixed(x[i], 0x9e37_79b9).rotate_left(7);
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let (mut x, mut bits) = (jit.upload(&[7])?, jit.zeros(1)?);
//! hash.launch(&jit, (1, 32), &mut x, &mut bits)?;
//! assert_eq!(x.to_vec()?, [mixed(7_u32, 0x9e37_79b9).rotate_left(7)]);
//! assert_eq!(bits.to_vec()?, [3]);
//! # Ok(())
//! # }
//! ```
//!
//! A type parameter has those that need not know the width by its bound; they are the same on the host:
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[device_fn]
//! fn wrapped<T: Int>(x: T, y: T) -> T {
//!     let sum = x.wrapping_add(y).wrapping_shl(3);
//!     let quotient = sum.wrapping_sub(y).wrapping_div(y);
//!     quotient.wrapping_neg().wrapping_rem(y.pow(2)).wrapping_shr(1)
//! }
//!
//! #[kernel]
//! fn wrap(x: &mut [i16]) {
//!     let i = global_id().x;
//!     if i < x.len() {
//!         x[i] = wrapped(x[i], 7);
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let mut x = jit.upload(&[i16::MIN, 300])?;
//! wrap.launch(&jit, (1, 32), &mut x)?;
//! assert_eq!(x.to_vec()?, [wrapped(i16::MIN, 7), wrapped(300, 7)]);
//! # Ok(())
//! # }
//! ```
//!
//! Single bits, and limits:
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn bits(x: u32, out: &mut [u32]) {
//!     out[0] = x.leading_zeros();
//!     out[1] = x.leading_ones();
//!     out[2] = x.trailing_zeros();
//!     out[3] = x.trailing_ones();
//!     out[4] = x.count_zeros();
//!     out[5] = x.swap_bytes();
//!     out[6] = x.reverse_bits();
//!     out[7] = x.rotate_right(4);
//!     out[8] = x.div_ceil(16);
//!     out[9] = if x.is_power_of_two() { 1 } else { 0 };
//! }
//!
//! #[kernel]
//! fn limits(x: i32, y: i32, signed: &mut [i32], unsigned: &mut [u32]) {
//!     signed[0] = x.saturating_add(y);
//!     signed[1] = x.saturating_sub(y);
//!     signed[2] = x.rem_euclid(y);
//!     signed[3] = x.div_euclid(y);
//!     signed[4] = x.wrapping_abs();
//!     unsigned[0] = x.abs_diff(y);
//!     unsigned[1] = x.unsigned_abs();
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let mut out = jit.zeros(10)?;
//! bits.launch(&jit, (1, 1), 0x50, &mut out)?;
//! assert_eq!(out.to_vec()?, [25, 0, 4, 0, 30, 0x5000_0000, 0x0a00_0000, 5, 5, 0]);
//! let (mut signed, mut unsigned) = (jit.zeros(5)?, jit.zeros(2)?);
//! limits.launch(&jit, (1, 1), i32::MIN, 10, &mut signed, &mut unsigned)?;
//! assert_eq!(signed.to_vec()?, [i32::MIN + 10, i32::MIN, 2, -214_748_365, i32::MIN]);
//! assert_eq!(unsigned.to_vec()?, [2_147_483_658, 2_147_483_648]);
//! # Ok(())
//! # }
//! ```

mod bits;

use std::ops::{
    BitAnd, BitAndAssign, BitOr, BitOrAssign, BitXor, BitXorAssign, Not, Shl, ShlAssign, Shr,
    ShrAssign,
};

use kiln_jit_core::build::{IntoVal, Val};
use kiln_jit_core::ir::{Scalar, Type};

use crate::math::power::positive_power;
use crate::table::{builds, methods};
use bits::Bits;

methods! {
    /// What can be done with an [`Int`](crate::plain::number::Int) besides.
    host IntOps: [
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
    ] on [i8, i16, i32, i64, isize, u8, u16, u32, u64, usize];
    /// Methods of integers, as methods of values. Those that look at single bits or at limits are for
    /// integers whose type is known.
    builder Integer;

    all {
        /// The sum, modulo 2 to the width.
        fn wrapping_add(self, other: Self) -> Self = builds!(|x, y| x + y);
        /// The difference, modulo 2 to the width.
        fn wrapping_sub(self, other: Self) -> Self = builds!(|x, y| x - y);
        /// The product, modulo 2 to the width.
        fn wrapping_mul(self, other: Self) -> Self = builds!(|x, y| x * y);
        /// The quotient, towards zero, modulo 2 to the width; by 0 the number.
        fn wrapping_div(self, other: Self) -> Self = builds!(|x, y| x / y);
        /// The remainder, with the sign of the number; by 0 it is 0.
        fn wrapping_rem(self, other: Self) -> Self = builds!(|x, y| x % y);
        /// The negative, modulo 2 to the width.
        fn wrapping_neg(self) -> Self = builds!(|x| -x);
        /// The number shifted to the left, by the amount modulo the width.
        fn wrapping_shl(self, amount: u32) -> Self = builds!(|x, n| x << amount_for(x, n));
        /// The number shifted to the right, by the amount modulo the width.
        fn wrapping_shr(self, amount: u32) -> Self = builds!(|x, n| x >> amount_for(x, n));
        /// The power, by repeated squaring.
        fn pow(self, exponent: u32) -> Self = builds!(|x, n| power(x, n));
        /// The power, by repeated squaring, modulo 2 to the width.
        fn wrapping_pow(self, exponent: u32) -> Self = builds!(|x, n| power(x, n));
    }
    known {
        /// How many bits are ones, `u32` as all counts.
        fn count_ones(self) -> u32 = builds!(|x| Bits::count(x, Bits::ones));
        /// How many bits are zeros.
        fn count_zeros(self) -> u32 = builds!(|x| Bits::count(!x, Bits::ones));
        /// How many zeros are above the highest one.
        fn leading_zeros(self) -> u32 = builds!(|x| Bits::count(x, Bits::zeros_above));
        /// How many ones are above the highest zero.
        fn leading_ones(self) -> u32 = builds!(|x| Bits::count(!x, Bits::zeros_above));
        /// How many zeros are below the lowest one.
        fn trailing_zeros(self) -> u32 = builds!(|x| Bits::count(x, Bits::zeros_below));
        /// How many ones are below the lowest zero.
        fn trailing_ones(self) -> u32 = builds!(|x| Bits::count(!x, Bits::zeros_below));
        /// The bytes in the other order.
        fn swap_bytes(self) -> Self = builds!(|x| Bits::map(x, Bits::bytes_reversed));
        /// The bits in the other order.
        fn reverse_bits(self) -> Self = builds!(|x| Bits::map(x, Bits::reversed));
        /// The bits moved to the left by the amount modulo the width, those that leave come in again.
        fn rotate_left(self, amount: u32) -> Self = builds!(|x, n| rotated(x, n, true));
        /// The bits moved to the right by the amount modulo the width, those that leave come in again.
        fn rotate_right(self, amount: u32) -> Self = builds!(|x, n| rotated(x, n, false));
        /// Whether the number is a power of two; of unsigned integers.
        fn is_power_of_two(self) -> bool = builds!(|x| {
            let (zero, one) = (x.builder().zero(x.ty()), x.builder().lit(x.ty(), 1));
            x.ne(zero) & (x & (x - one)).eq(zero)
        });
        /// The absolute difference, which is unsigned.
        fn abs_diff(self, other: Self) -> Unsigned = builds!(|x, y| {
            x.lt(y).select(y - x, x - y).cast(unsigned(x.ty()))
        });
        /// The absolute value; the smallest integer is its own. Of signed integers.
        fn wrapping_abs(self) -> Self = builds!(|x| x.lt(x.builder().zero(x.ty())).select(-x, x));
        /// The absolute value, which is unsigned. Of signed integers.
        fn unsigned_abs(self) -> Unsigned = builds!(|x| x.wrapping_abs().cast(unsigned(x.ty())));
        /// The remainder that is never negative.
        fn rem_euclid(self, by: Self) -> Self = builds!(|x, by| rem_euclid(x, by));
        /// The quotient that leaves a remainder which is never negative.
        fn div_euclid(self, by: Self) -> Self = builds!(|x, by| div_euclid(x, by));
        /// The quotient, rounded up; of unsigned integers.
        fn div_ceil(self, by: Self) -> Self = builds!(|x, by| {
            let (zero, one) = (x.builder().zero(x.ty()), x.builder().lit(x.ty(), 1));
            let quotient = x / by;
            (x % by).ne(zero).select(quotient + one, quotient)
        });
        /// The sum, or the limit that it is beyond.
        fn saturating_add(self, other: Self) -> Self = builds!(|x, y| saturating_add(x, y));
        /// The difference, or the limit that it is beyond.
        fn saturating_sub(self, other: Self) -> Self = builds!(|x, y| saturating_sub(x, y));
    }
}

/// The unsigned integer type of the same width.
fn unsigned(ty: Type) -> Type {
    let int = ty.as_scalar().filter(|scalar| scalar.is_int());
    int.map_or(ty, |scalar| Type::scalar(scalar.unsigned()))
}

fn is_signed(ty: Type) -> bool {
    unsigned(ty) != ty
}

/// The amount of a shift as its left side's type, which counts modulo the width.
#[track_caller]
fn amount_for<'k>(x: Val<'k>, amount: impl IntoVal<'k>) -> Val<'k> {
    let width = x.ty().as_scalar().map(|scalar| i128::from(scalar.bits()));
    match (amount.known_int(), width) {
        (Some(n), Some(width)) => x.builder().lit(x.ty(), n.rem_euclid(width) as i64),
        _ => amount.into_val(x.builder(), Some(Type::U32)).cast(x.ty()),
    }
}

#[track_caller]
fn power<'k>(x: Val<'k>, n: impl IntoVal<'k>) -> Val<'k> {
    let b = x.builder();
    positive_power(x, n.into_val(b, Some(Type::U32)), b.lit(x.ty(), 1))
}

/// The amount of a rotation, and what the others are up to the width: both count modulo that, and so do
/// 32-bit integers, as it divides 2^32.
#[track_caller]
fn rotated<'k>(x: Val<'k>, amount: impl IntoVal<'k>, left: bool) -> Val<'k> {
    let ty = unsigned(x.ty());
    let there = amount
        .into_val(x.builder(), Some(Type::U32))
        .cast(Type::U32);
    let back = (-there.cast(Type::I32)).cast(Type::U32);
    let (up, down) = if left { (there, back) } else { (back, there) };
    let bits = x.cast(ty);
    ((bits << up.cast(ty)) | (bits >> down.cast(ty))).cast(x.ty())
}

#[track_caller]
fn rem_euclid<'k>(x: Val<'k>, by: Val<'k>) -> Val<'k> {
    let rest = x % by;
    if !is_signed(x.ty()) {
        return rest;
    }
    let zero = x.builder().zero(x.ty());
    let size = by.lt(zero).select(-by, by);
    rest.lt(zero).select(rest + size, rest)
}

#[track_caller]
fn div_euclid<'k>(x: Val<'k>, by: Val<'k>) -> Val<'k> {
    let quotient = x / by;
    if !is_signed(x.ty()) {
        return quotient;
    }
    let (zero, one) = (x.builder().zero(x.ty()), x.builder().lit(x.ty(), 1));
    let rounded = zero.lt(by).select(quotient - one, quotient + one);
    (x % by).lt(zero).select(rounded, quotient)
}

#[track_caller]
fn saturating_add<'k>(x: Val<'k>, y: Val<'k>) -> Val<'k> {
    let sum = x + y;
    let (low, high) = limits(x);
    if !is_signed(x.ty()) {
        return sum.lt(x).select(high, sum);
    }
    // It overflows if both have the sign that the sum has not.
    let zero = x.builder().zero(x.ty());
    let limit = x.lt(zero).select(low, high);
    ((x ^ sum) & (y ^ sum)).lt(zero).select(limit, sum)
}

#[track_caller]
fn saturating_sub<'k>(x: Val<'k>, y: Val<'k>) -> Val<'k> {
    let difference = x - y;
    let (low, high) = limits(x);
    if !is_signed(x.ty()) {
        return x.lt(y).select(low, difference);
    }
    let zero = x.builder().zero(x.ty());
    let limit = x.lt(zero).select(low, high);
    ((x ^ y) & (x ^ difference))
        .lt(zero)
        .select(limit, difference)
}

/// The smallest and the largest integer of the type of one.
#[track_caller]
fn limits<'k>(x: Val<'k>) -> (Val<'k>, Val<'k>) {
    let (b, ty) = (x.builder(), x.ty());
    let unused = 64 - ty.as_scalar().map_or(32, Scalar::bits);
    match is_signed(ty) {
        true => (b.lit(ty, i64::MIN >> unused), b.lit(ty, i64::MAX >> unused)),
        false => (b.zero(ty), b.lit(ty, u64::MAX >> unused)),
    }
}
