//! What kinds of numbers arrays have, for functions that not every element has.

use half::{bf16, f16};
use kiln_jit_core::kernel_type;

use crate::Element;

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

    /// A number and its index.
    #[doc(hidden)]
    type Indexed: Element;

    /// A number with an index.
    #[doc(hidden)]
    fn indexed(self, index: u32) -> Self::Indexed;

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
pub trait FloatElement: SignedElement {}

/// An integer.
pub trait IntegerElement: NumberElement {}

macro_rules! numbers {
    ($($number:ident $indexed:ident $zero:expr, $one:expr, $least:expr, $greatest:expr, $float:literal;)*) => {$(
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
            type Indexed = $indexed;

            fn indexed(self, index: u32) -> $indexed {
                $indexed { value: self, index }
            }

            fn from_f64(number: f64) -> Self {
                numbers!(@from $number, number)
            }

            fn to_f64(self) -> f64 {
                numbers!(@to $number, self)
            }
        }
    )*};
    (@from f16, $number:ident) => { f16::from_f64($number) };
    (@from bf16, $number:ident) => { bf16::from_f64($number) };
    (@to f16, $number:ident) => { $number.to_f64() };
    (@to bf16, $number:ident) => { $number.to_f64() };
    (@to $ty:ident, $number:ident) => { $number as f64 };
    (@from $ty:ident, $number:ident) => { $number as $ty };
}
numbers! {
    i8 IndexedI8 0, 1, i8::MIN, i8::MAX, false;
    i16 IndexedI16 0, 1, i16::MIN, i16::MAX, false;
    i32 IndexedI32 0, 1, i32::MIN, i32::MAX, false;
    i64 IndexedI64 0, 1, i64::MIN, i64::MAX, false;
    u8 IndexedU8 0, 1, u8::MIN, u8::MAX, false;
    u16 IndexedU16 0, 1, u16::MIN, u16::MAX, false;
    u32 IndexedU32 0, 1, u32::MIN, u32::MAX, false;
    u64 IndexedU64 0, 1, u64::MIN, u64::MAX, false;
    f16 IndexedF16 f16::ZERO, f16::ONE, f16::NEG_INFINITY, f16::INFINITY, true;
    bf16 IndexedBF16 bf16::ZERO, bf16::ONE, bf16::NEG_INFINITY, bf16::INFINITY, true;
    f32 IndexedF32 0.0, 1.0, f32::NEG_INFINITY, f32::INFINITY, true;
    f64 IndexedF64 0.0, 1.0, f64::NEG_INFINITY, f64::INFINITY, true;
}

macro_rules! kinds {
    ($($kind:ident: $($number:ident)*;)*) => {$($(
        impl $kind for $number {}
    )*)*};
}
kinds! {
    SignedElement: i8 i16 i32 i64 f16 bf16 f32 f64;
    FloatElement: f16 bf16 f32 f64;
    IntegerElement: i8 i16 i32 i64 u8 u16 u32 u64;
}
