//! `x.into()` of numbers, and `x.try_into().unwrap()` to integers and of slices to arrays, in `#[kernel]` functions. What
//! they convert to rustc has found in the checked copy.
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn records(bytes: &[u8], out: &mut [f64]) {
//!     let i = global_id().x;
//!     if i < out.len() {
//!         let [a, b, scale]: [u8; 3] = bytes[3 * i..3 * i + 3].try_into().unwrap();
//!         let scale: f64 = scale.into();
//!         out[i] = scale * u16::from_be_bytes([a, b]) as f64;
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let bytes = jit.upload(&[1, 2, 3, 0, 5, 6])?;
//! let mut out = jit.zeros(2)?;
//! records.launch(&jit, (1, 32), &bytes, &mut out)?;
//! assert_eq!(out.to_vec()?, [774.0, 30.0]);
//! # Ok(())
//! # }
//! ```

use half::{bf16, f16};
use kiln_jit_core::front::macros::{Front, Operand, Pooled, TypeOf};
use kiln_jit_core::ir::Type;
use kiln_jit_core::value::DeviceType;

/// A number, which `into` makes of one that it holds, or of a `bool`.
#[diagnostic::on_unimplemented(
    message = "kernels have `into()` of numbers, and `{Self}` is none",
    label = "not a number",
    note = "call the function by its name, `T::from(x)` for instance, whose `impl` block has `#[device_fn]`"
)]
pub trait NumberInKernels: DeviceType {}

macro_rules! numbers {
    ($($t:ty)*) => { $(impl NumberInKernels for $t {})* };
}
numbers! { bool i8 i16 i32 i64 isize u8 u16 u32 u64 usize f16 bf16 f32 f64 }

/// The entry of a pool for the type of `x.into()`.
#[doc(hidden)]
pub fn into_number<X: NumberInKernels, T: NumberInKernels>(_: &TypeOf<X>, _: &TypeOf<T>) -> Pooled {
    Pooled::ty::<T>()
}

/// What `x.try_into().unwrap()` makes in kernels: an integer, or an array of a slice.
#[diagnostic::on_unimplemented(
    message = "kernels have `try_into()` to integers and of slices to arrays, and not to `{Self}`",
    label = "neither an integer nor an array",
    note = "write a `#[device_fn]` that returns a `Result`"
)]
pub trait TriedInKernels {
    /// Converts; where that fails the thread ends with the message.
    fn convert<'k>(front: Front<'k>, value: Operand<'k>, message: &str) -> Operand<'k>;
}

impl<T: DeviceType, const N: usize> TriedInKernels for [T; N] {
    fn convert<'k>(front: Front<'k>, value: Operand<'k>, message: &str) -> Operand<'k> {
        value.to_array(front.builder().device_type::<[T; N]>(), message)
    }
}

/// Nothing is written through it, so that it may refer to a copy.
impl<T: DeviceType, const N: usize> TriedInKernels for &[T; N] {
    fn convert<'k>(front: Front<'k>, value: Operand<'k>, message: &str) -> Operand<'k> {
        <[T; N]>::convert(front, value, message).address(false)
    }
}

macro_rules! integers {
    ($($t:ty)*) => {$(
        impl TriedInKernels for $t {
            fn convert<'k>(front: Front<'k>, value: Operand<'k>, message: &str) -> Operand<'k> {
                front.to_integer(value, front.builder().device_type::<$t>(), message)
            }
        }
    )*};
}
integers! { i8 i16 i32 i64 isize u8 u16 u32 u64 usize }

/// What Rust says of a conversion that fails.
const FAILED: &str = "called `Result::unwrap()` on an `Err` value: the conversion is out of range";

/// The entry of a pool for `x.try_into().unwrap()`; `EXPECTED` of `expect`, which has its own text.
#[doc(hidden)]
pub fn try_into_of<T: TriedInKernels, const EXPECTED: bool>(_: &TypeOf<T>) -> Pooled {
    fn call<'k, T: TriedInKernels, const EXPECTED: bool>(
        front: Front<'k>,
        _: &[Type],
        args: &[Operand<'k>],
    ) -> Operand<'k> {
        let message = match EXPECTED {
            true => front.builder().written_text(),
            false => FAILED,
        };
        match args {
            [value] => T::convert(front, *value, message),
            _ => front.unit(),
        }
    }
    Pooled::call(call::<T, EXPECTED>)
}
