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
//!
//! Whether a result fits, also of a type parameter:
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[device_fn]
//! fn carried<T: Int>(x: T, y: T) -> (T, bool) {
//!     let (sum, first) = x.overflowing_add(y);
//!     let (rest, second) = sum.overflowing_sub(T::ONE);
//!     (rest.overflowing_neg().0, first | second)
//! }
//!
//! #[kernel]
//! fn fits(x: u8, y: u8, out: &mut [u8], beyond: &mut [u32]) {
//!     let (sum, carries) = carried(x, y);
//!     let (product, large) = x.overflowing_mul(y);
//!     let (power, larger) = x.overflowing_pow(2);
//!     let ((left, far), (right, _)) = (x.overflowing_shl(9), x.overflowing_shr(1));
//!     let (moved, below) = x.overflowing_add_signed(-128);
//!     out[0] = sum ^ product ^ power;
//!     out[1] = left + right + moved;
//!     for bit in [carries, large, larger, far, below] {
//!         beyond[0] = 2 * beyond[0] + bit as u32;
//!     }
//!     let (size, least) = x.cast_signed().overflowing_abs();
//!     out[2] = if least { 0 } else { size.cast_unsigned() };
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let (mut out, mut beyond) = (jit.zeros(3)?, jit.zeros(1)?);
//! fits.launch(&jit, (1, 1), 100, 200, &mut out, &mut beyond)?;
//! let (sum, carries) = carried(100u8, 200);
//! assert!(carries);
//! assert_eq!(out.to_vec()?[..2], [sum ^ 32 ^ 16, 200 + 50 - 28]);
//! assert_eq!((out.to_vec()?[2], beyond.to_vec()?[0]), (100, 0b11111));
//! # Ok(())
//! # }
//! ```
//!
//! Limits in place of what is beyond them, roots, logarithms, multiples:
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn limited(x: i32, out: &mut [i32]) {
//!     out[0] = x.saturating_mul(-2);
//!     out[1] = x.saturating_pow(3);
//!     out[2] = x.saturating_neg();
//!     out[3] = x.saturating_abs();
//!     out[4] = x.saturating_div(-1);
//!     out[5] = x.saturating_sub_unsigned(5);
//!     out[6] = x.saturating_add_unsigned(u32::MAX);
//!     out[7] = x.wrapping_sub_unsigned(1).wrapping_add_unsigned(2);
//!     out[8] = x.wrapping_div_euclid(-1) ^ x.wrapping_rem_euclid(-1);
//!     out[9] = x.is_negative() as i32 + 2 * x.is_positive() as i32;
//! }
//!
//! #[kernel]
//! fn whole(x: u32, out: &mut [u32]) {
//!     out[0] = x.isqrt();
//!     out[1] = x.ilog2();
//!     out[2] = x.ilog10();
//!     out[3] = x.ilog(7);
//!     out[4] = x.next_power_of_two();
//!     out[5] = x.next_multiple_of(64);
//!     out[6] = x.is_multiple_of(8) as u32;
//!     out[7] = x.unbounded_shl(32) + x.unbounded_shr(1);
//!     out[8] = x.wrapping_add_signed(-1);
//!     out[9] = x.saturating_add_signed(-2000);
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let mut out = jit.zeros(10)?;
//! limited.launch(&jit, (1, 1), i32::MIN, &mut out)?;
//! let (min, max) = (i32::MIN, i32::MAX);
//! assert_eq!(out.to_vec()?, [max, min, max, max, max, min, max, min + 1, min, 1]);
//! let mut out = jit.zeros(10)?;
//! whole.launch(&jit, (1, 1), 1000, &mut out)?;
//! assert_eq!(out.to_vec()?, [31, 9, 3, 3, 1024, 1024, 1, 500, 999, 0]);
//! # Ok(())
//! # }
//! ```
//!
//! Results that may not be there:
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn checked(x: i32, n: u8, out: &mut [i32]) {
//!     out[0] = x.checked_add(1).unwrap_or(-1);
//!     out[1] = x.checked_sub(1).unwrap_or(-1);
//!     out[2] = x.checked_mul(2).and_then(|twice| twice.checked_pow(2)).unwrap_or(-1);
//!     out[3] = x.checked_div(0).is_none() as i32 + 2 * x.checked_rem(7).is_some() as i32;
//!     out[4] = x.checked_div_euclid(2).unwrap_or(-1) ^ x.checked_rem_euclid(2).unwrap_or(-1);
//!     out[5] = x.checked_neg().zip(x.checked_abs()).is_some() as i32;
//!     out[6] = x.checked_shl(32).or(x.checked_shr(3)).unwrap_or(-1);
//!     out[7] = x.checked_add_unsigned(9).or(x.checked_sub_unsigned(9)).unwrap_or(-1);
//!     out[8] = n.checked_add_signed(-1).map_or(-1, |below| below as i32);
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let mut out = jit.zeros(9)?;
//! checked.launch(&jit, (1, 1), i32::MAX, 0, &mut out)?;
//! let max = i32::MAX;
//! assert_eq!(out.to_vec()?, [-1, max - 1, -1, 3, max / 2 ^ 1, 1, max >> 3, max - 9, -1]);
//! # Ok(())
//! # }
//! ```
//!
//! Instructions of GPUs that Rust has no methods for are functions, in [`words`].

mod bits;
pub(crate) mod division;
mod overflow;
mod root;
pub mod words;

use std::ops::{
    BitAnd, BitAndAssign, BitOr, BitOrAssign, BitXor, BitXorAssign, Not, Shl, ShlAssign, Shr,
    ShrAssign,
};

use kiln_jit_core::build::{IntoVal, Val};
use kiln_jit_core::ir::{Scalar, Type};

use crate::math::power::positive_power;
use crate::table::{builds, methods};
use bits::Bits;

/// A method of integers whose width has to be known for what it builds.
macro_rules! known {
    (@row $name:ident($($arg:ident),*), $($how:tt)*) => { None };
    (@build $row:path, ($receiver:ident $(, $arg:ident)*), |$x:ident $(, $param:ident)*| $value:expr) => {{
        let ($x, $($param,)*) = ($receiver, $($arg,)*);
        match unknown($x) {
            Some(refused) => refused,
            None => $value,
        }
    }};
}

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
        /// The sum, modulo 2 to the width, and whether it is another than the exact one; in the builder the fields `0`
        /// and `1` of a struct, as those of the following.
        fn overflowing_add(self, other: Self) -> (Self, bool) = builds!(|x, y| overflow::add(x, y).tuple());
        /// The difference, modulo 2 to the width, and whether it is another than the exact one.
        fn overflowing_sub(self, other: Self) -> (Self, bool) = builds!(|x, y| overflow::sub(x, y).tuple());
        /// The negative, modulo 2 to the width, and whether it is another than the exact one.
        fn overflowing_neg(self) -> (Self, bool) = builds!(|x| overflow::neg(x).tuple());
        /// The sum, if it fits; in the builder a struct of `is_some` and `value`, as those of the following.
        fn checked_add(self, other: Self) -> (Option<Self>) = builds!(|x, y| overflow::add(x, y).checked());
        /// The difference, if it fits.
        fn checked_sub(self, other: Self) -> (Option<Self>) = builds!(|x, y| overflow::sub(x, y).checked());
        /// The negative, if it fits.
        fn checked_neg(self) -> (Option<Self>) = builds!(|x| overflow::neg(x).checked());
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
        /// The quotient, rounded up; of unsigned integers.
        fn div_ceil(self, by: Self) -> Self = builds!(|x, by| {
            let (zero, one) = (x.builder().zero(x.ty()), x.builder().lit(x.ty(), 1));
            let quotient = x / by;
            (x % by).ne(zero).select(quotient + one, quotient)
        });
        /// Whether a multiple of `by` is the number; of unsigned integers. Only 0 is one of 0.
        fn is_multiple_of(self, by: Self) -> bool = builds!(|x, by| {
            let zero = x.builder().zero(x.ty());
            by.eq(zero).select(x, x % by).eq(zero)
        });
        /// The least multiple of `by` that is not below the number, modulo 2 to the width; by 0, for which Rust panics,
        /// the number. Of unsigned integers.
        fn next_multiple_of(self, by: Self) -> Self = builds!(|x, by| root::next_multiple_of(x, by));
        /// The least power of 2 that is not below the number, modulo 2 to the width; of unsigned integers.
        fn next_power_of_two(self) -> Self = builds!(|x| root::next_power_of_two(x));
        /// The square root, rounded down; of a negative number, for which Rust panics, that of its bits as an unsigned
        /// one.
        fn isqrt(self) -> Self = known!(|x| root::isqrt(x));
        /// The logarithm to base 2, rounded down; of 0, for which Rust panics, `u32::MAX`, of a negative number that of
        /// its bits as an unsigned one.
        fn ilog2(self) -> u32 = builds!(|x| root::ilog2(x));
        /// The logarithm to base 10, rounded down; of 0, for which Rust panics, 0, of a negative number that of its bits
        /// as an unsigned one.
        fn ilog10(self) -> u32 = known!(|x| root::ilog10(x));
        /// The logarithm to a base, rounded down; where Rust panics, of a number that is not positive it is 0, and a
        /// base below 2 is a 2.
        fn ilog(self, base: Self) -> u32 = builds!(|x, base| root::ilog(x, base));
        /// Whether the number is below 0; of signed integers.
        fn is_negative(self) -> bool = builds!(|x| x.lt(x.builder().zero(x.ty())));
        /// Whether the number is above 0; of signed integers.
        fn is_positive(self) -> bool = builds!(|x| x.gt(x.builder().zero(x.ty())));
        /// The bits as a signed integer, as `as` converts it; of unsigned integers.
        fn cast_signed(self) -> Signed = known!(|x| x.cast(overflow::signed(x.ty())));
        /// The bits as an unsigned integer, as `as` converts it; of signed integers.
        fn cast_unsigned(self) -> Unsigned = known!(|x| x.cast(unsigned(x.ty())));
        /// The number shifted to the left, by any amount.
        fn unbounded_shl(self, amount: u32) -> Self = known!(|x, n| {
            overflow::shifted(x, n, true).or(overflow::shifted_out(x, true))
        });
        /// The number shifted to the right, by any amount; of a negative number -1 is left.
        fn unbounded_shr(self, amount: u32) -> Self = known!(|x, n| {
            overflow::shifted(x, n, false).or(overflow::shifted_out(x, false))
        });
        /// The quotient that leaves a remainder which is never negative, modulo 2 to the width.
        fn wrapping_div_euclid(self, by: Self) -> Self = known!(|x, by| division::div_euclid(x, by));
        /// The remainder that is never negative, also of the least integer by -1.
        fn wrapping_rem_euclid(self, by: Self) -> Self = known!(|x, by| division::rem_euclid(x, by));
        /// The sum with a signed integer, modulo 2 to the width; of unsigned integers.
        fn wrapping_add_signed(self, other: Signed) -> Self = known!(|x, y| overflow::add_signed(x, y).value);
        /// The sum with an unsigned integer, modulo 2 to the width; of signed integers.
        fn wrapping_add_unsigned(self, other: Unsigned) -> Self = known!(|x, y| {
            overflow::move_unsigned(x, y, true).value
        });
        /// The difference from an unsigned integer, modulo 2 to the width; of signed integers.
        fn wrapping_sub_unsigned(self, other: Unsigned) -> Self = known!(|x, y| {
            overflow::move_unsigned(x, y, false).value
        });
        /// The product, modulo 2 to the width, and whether it is another than the exact one.
        fn overflowing_mul(self, other: Self) -> (Self, bool) = known!(|x, y| overflow::mul(x, y).tuple());
        /// The power, modulo 2 to the width, and whether it is another than the exact one.
        fn overflowing_pow(self, exponent: u32) -> (Self, bool) = known!(|x, n| overflow::pow(x, n).tuple());
        /// The number shifted to the left, by the amount modulo the width, and whether the amount is beyond it.
        fn overflowing_shl(self, amount: u32) -> (Self, bool) = known!(|x, n| {
            overflow::shifted(x, n, true).tuple()
        });
        /// The number shifted to the right, by the amount modulo the width, and whether the amount is beyond it.
        fn overflowing_shr(self, amount: u32) -> (Self, bool) = known!(|x, n| {
            overflow::shifted(x, n, false).tuple()
        });
        /// The absolute value, and whether it is that of the least integer, which is its own; of signed integers.
        fn overflowing_abs(self) -> (Self, bool) = known!(|x| {
            let overflows = x.eq(limits(x).0);
            crate::math::rows::pair(x.wrapping_abs(), overflows)
        });
        /// The sum with a signed integer, modulo 2 to the width, and whether it is another than the exact one; of
        /// unsigned integers.
        fn overflowing_add_signed(self, other: Signed) -> (Self, bool) = known!(|x, y| {
            overflow::add_signed(x, y).tuple()
        });
        /// The product, if it fits.
        fn checked_mul(self, other: Self) -> (Option<Self>) = known!(|x, y| overflow::mul(x, y).checked());
        /// The quotient, towards zero, if there is one and it fits.
        fn checked_div(self, by: Self) -> (Option<Self>) = known!(|x, by| {
            overflow::some_if(overflow::divides(x, by), x / by)
        });
        /// The remainder, with the sign of the number, if there is a quotient that fits.
        fn checked_rem(self, by: Self) -> (Option<Self>) = known!(|x, by| {
            overflow::some_if(overflow::divides(x, by), x % by)
        });
        /// The quotient that leaves a remainder which is never negative, if there is one and it fits.
        fn checked_div_euclid(self, by: Self) -> (Option<Self>) = known!(|x, by| {
            overflow::some_if(overflow::divides(x, by), division::div_euclid(x, by))
        });
        /// The remainder that is never negative, if there is a quotient that fits.
        fn checked_rem_euclid(self, by: Self) -> (Option<Self>) = known!(|x, by| {
            overflow::some_if(overflow::divides(x, by), division::rem_euclid(x, by))
        });
        /// The power, if it fits.
        fn checked_pow(self, exponent: u32) -> (Option<Self>) = known!(|x, n| overflow::pow(x, n).checked());
        /// The number shifted to the left, if the amount is below the width.
        fn checked_shl(self, amount: u32) -> (Option<Self>) = known!(|x, n| {
            overflow::shifted(x, n, true).checked()
        });
        /// The number shifted to the right, if the amount is below the width.
        fn checked_shr(self, amount: u32) -> (Option<Self>) = known!(|x, n| {
            overflow::shifted(x, n, false).checked()
        });
        /// The absolute value, if it fits; of signed integers.
        fn checked_abs(self) -> (Option<Self>) = known!(|x| {
            overflow::some_if(x.ne(limits(x).0), x.wrapping_abs())
        });
        /// The sum with a signed integer, if it fits; of unsigned integers.
        fn checked_add_signed(self, other: Signed) -> (Option<Self>) = known!(|x, y| {
            overflow::add_signed(x, y).checked()
        });
        /// The sum with an unsigned integer, if it fits; of signed integers.
        fn checked_add_unsigned(self, other: Unsigned) -> (Option<Self>) = known!(|x, y| {
            overflow::move_unsigned(x, y, true).checked()
        });
        /// The difference from an unsigned integer, if it fits; of signed integers.
        fn checked_sub_unsigned(self, other: Unsigned) -> (Option<Self>) = known!(|x, y| {
            overflow::move_unsigned(x, y, false).checked()
        });
        /// The product, or the limit that it is beyond.
        fn saturating_mul(self, other: Self) -> Self = known!(|x, y| {
            overflow::mul(x, y).or(overflow::limit_of_product(x, y))
        });
        /// The quotient, towards zero, or the largest integer for the least by -1.
        fn saturating_div(self, by: Self) -> Self = known!(|x, by| match is_signed(x.ty()) {
            true => by.eq(!x.builder().zero(x.ty())).select(overflow::or_largest(x, -x), x / by),
            false => x / by,
        });
        /// The power, or the limit that it is beyond.
        fn saturating_pow(self, exponent: u32) -> Self = known!(|x, n| overflow::saturating_pow(x, n));
        /// The negative, or the largest integer for the least; of signed integers.
        fn saturating_neg(self) -> Self = known!(|x| overflow::or_largest(x, -x));
        /// The absolute value, or the largest integer for that of the least; of signed integers.
        fn saturating_abs(self) -> Self = known!(|x| overflow::or_largest(x, x.wrapping_abs()));
        /// The sum with a signed integer, or the limit that it is beyond; of unsigned integers.
        fn saturating_add_signed(self, other: Signed) -> Self = known!(|x, y| {
            let sum = overflow::add_signed(x, y);
            let (low, high) = limits(x);
            // Against the sign of what is added it wraps.
            sum.or(sum.value.lt(x).select(high, low))
        });
        /// The sum with an unsigned integer, or the largest one; of signed integers.
        fn saturating_add_unsigned(self, other: Unsigned) -> Self = known!(|x, y| {
            overflow::move_unsigned(x, y, true).or(limits(x).1)
        });
        /// The difference from an unsigned integer, or the least one; of signed integers.
        fn saturating_sub_unsigned(self, other: Unsigned) -> Self = known!(|x, y| {
            overflow::move_unsigned(x, y, false).or(limits(x).0)
        });
        /// The sum, or the limit that it is beyond.
        fn saturating_add(self, other: Self) -> Self = known!(|x, y| saturating_add(x, y));
        /// The difference, or the limit that it is beyond.
        fn saturating_sub(self, other: Self) -> Self = known!(|x, y| saturating_sub(x, y));
    }
}

/// Of an integer whose width is not known, what is left of the refusal.
#[track_caller]
pub(crate) fn unknown(x: Val<'_>) -> Option<Val<'_>> {
    if x.ty().as_scalar().is_some_and(Scalar::is_int) {
        return None;
    }
    let message = "this method is for integers whose type is known, `u32` for instance";
    Some(x.builder().intrinsic_error(message.to_owned(), x.ty()))
}

/// The unsigned integer type of the same width.
pub(crate) fn unsigned(ty: Type) -> Type {
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
