//! What kinds of numbers arrays have, for functions that not every element has.

use half::{bf16, f16};
use kiln_jit_core::kernel_type;

use crate::{Array, Element, Result};

/// A number.
pub trait NumberElement: Element + PartialOrd + Default {
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// The least number, of floats minus infinity.
    const LEAST: Self;
    /// The greatest number, of floats infinity.
    const GREATEST: Self;
    /// Whether the type is one of floats.
    const IS_FLOAT: bool;

    /// The type of sums and products: `u64` of unsigned integers and `i64` of those with a sign, as in NumPy, and that of
    /// the numbers of floats.
    type Sum: NumberElement;

    /// What sums are computed in: `f32` of halves, otherwise the type of sums.
    type Accumulator: NumberElement;

    /// A number and its index.
    #[doc(hidden)]
    type Indexed: Element;

    /// A number with an index.
    #[doc(hidden)]
    fn indexed(self, index: u32) -> Self::Indexed;

    /// Where in an indexed number its index lies, in bytes.
    #[doc(hidden)]
    const PLACE_OF_INDEX: usize;

    /// A sum as it is given out.
    #[doc(hidden)]
    fn whole_sum(sum: Self::Accumulator) -> Self::Sum;

    /// Sums as they are given out.
    #[doc(hidden)]
    fn whole_sums(sums: Array<Self::Accumulator>) -> Result<Array<Self::Sum>>;

    /// The number that is nearest.
    fn from_f64(number: f64) -> Self;

    /// The number as an `f64`, the nearest one.
    fn to_f64(self) -> f64;
}

/// A number that may be negative.
pub trait SignedElement: NumberElement {}

/// A float: what the mathematical functions of arrays take. rustc refuses the others.
///
/// ```compile_fail,E0277
/// use kiln::prelude::*;
///
/// # fn main() -> kiln::Result<()> {
/// let x = Arrays::new(&Jit::new()?).vector(vec![4i32, 9])?;
/// x.sqrt().eval()?; // x.cast::<f32>().sqrt()
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no float",
    label = "this function is of arrays of floats",
    note = "convert the elements before: `x.cast::<f32>()`"
)]
pub trait FloatElement: SignedElement {
    /// A sum, and what it has lost by rounding.
    #[doc(hidden)]
    type Compensated: Element;

    /// A sum of nothing.
    #[doc(hidden)]
    fn uncompensated() -> Self::Compensated;
}

/// An integer.
pub trait IntegerElement: NumberElement {}

macro_rules! numbers {
    ($($number:ident $sum:ident $accumulator:ident $indexed:ident $zero:expr, $one:expr, $least:expr, $greatest:expr, $float:literal;)*) => {$(
        kernel_type! {
            /// A number and its index.
            #[doc(hidden)]
            pub struct $indexed {
                value: $number,
                index: u32,
            }
        }

        impl NumberElement for $number {
            const ZERO: Self = $zero;
            const ONE: Self = $one;
            const LEAST: Self = $least;
            const GREATEST: Self = $greatest;
            const IS_FLOAT: bool = $float;
            type Sum = $sum;
            type Accumulator = $accumulator;
            type Indexed = $indexed;
            const PLACE_OF_INDEX: usize = std::mem::offset_of!($indexed, index);

            fn indexed(self, index: u32) -> $indexed {
                $indexed { value: self, index }
            }

            fn whole_sum(sum: $accumulator) -> $sum {
                numbers!(@sum $number, sum)
            }

            fn whole_sums(sums: Array<$accumulator>) -> Result<Array<$sum>> {
                numbers!(@sums $number, sums)
            }

            fn from_f64(number: f64) -> Self {
                numbers!(@from $number, number)
            }

            fn to_f64(self) -> f64 {
                numbers!(@to $number, self)
            }
        }
    )*};
    (@sum f16, $sum:ident) => { f16::from_f32($sum) };
    (@sum bf16, $sum:ident) => { bf16::from_f32($sum) };
    (@sum $ty:ident, $sum:ident) => { $sum };
    (@sums f16, $sums:ident) => { $sums.cast::<f16>().eval() };
    (@sums bf16, $sums:ident) => { $sums.cast::<bf16>().eval() };
    (@sums $ty:ident, $sums:ident) => { Ok($sums) };
    (@from f16, $number:ident) => { f16::from_f64($number) };
    (@from bf16, $number:ident) => { bf16::from_f64($number) };
    (@to f16, $number:ident) => { $number.to_f64() };
    (@to bf16, $number:ident) => { $number.to_f64() };
    (@to $ty:ident, $number:ident) => { $number as f64 };
    (@from $ty:ident, $number:ident) => { $number as $ty };
}
numbers! {
    i8 i64 i64 IndexedI8 0, 1, i8::MIN, i8::MAX, false;
    i16 i64 i64 IndexedI16 0, 1, i16::MIN, i16::MAX, false;
    i32 i64 i64 IndexedI32 0, 1, i32::MIN, i32::MAX, false;
    i64 i64 i64 IndexedI64 0, 1, i64::MIN, i64::MAX, false;
    u8 u64 u64 IndexedU8 0, 1, u8::MIN, u8::MAX, false;
    u16 u64 u64 IndexedU16 0, 1, u16::MIN, u16::MAX, false;
    u32 u64 u64 IndexedU32 0, 1, u32::MIN, u32::MAX, false;
    u64 u64 u64 IndexedU64 0, 1, u64::MIN, u64::MAX, false;
    f16 f16 f32 IndexedF16 f16::ZERO, f16::ONE, f16::NEG_INFINITY, f16::INFINITY, true;
    bf16 bf16 f32 IndexedBF16 bf16::ZERO, bf16::ONE, bf16::NEG_INFINITY, bf16::INFINITY, true;
    f32 f32 f32 IndexedF32 0.0, 1.0, f32::NEG_INFINITY, f32::INFINITY, true;
    f64 f64 f64 IndexedF64 0.0, 1.0, f64::NEG_INFINITY, f64::INFINITY, true;
}

macro_rules! kinds {
    ($($kind:ident: $($number:ident)*;)*) => {$($(
        impl $kind for $number {}
    )*)*};
}
kinds! {
    SignedElement: i8 i16 i32 i64 f16 bf16 f32 f64;
    IntegerElement: i8 i16 i32 i64 u8 u16 u32 u64;
}

macro_rules! floats {
    ($($float:ident $compensated:ident $of:ident;)*) => {$(
        kernel_type! {
            /// A sum, and what it has lost by rounding.
            #[doc(hidden)]
            pub struct $compensated {
                sum: $of,
                lost: $of,
            }
        }

        impl FloatElement for $float {
            type Compensated = $compensated;

            fn uncompensated() -> $compensated {
                $compensated { sum: 0.0, lost: 0.0 }
            }
        }
    )*};
}
floats! {
    f16 CompensatedF16 f32;
    bf16 CompensatedBF16 f32;
    f32 CompensatedF32 f32;
    f64 CompensatedF64 f64;
}
