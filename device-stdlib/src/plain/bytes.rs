//! Numbers as bytes in `#[kernel]` functions, `to_be_bytes`, `from_le_bytes` and their kind, those of Rust. Integers and
//! floats of a written size have them; `usize` has not, whose size on the host is another.
//!
//! ```
//! use kiln::prelude::*;
//!
//! /// Reads big-endian numbers, and writes their sums with the lowest byte first.
//! #[kernel]
//! fn sums(words: &[[u8; 4]], out: &mut [[u8; 8]]) {
//!     let i = global_id().x;
//!     if i < out.len() {
//!         let sum: u64 = words[..=i].iter().map(|&w| u32::from_be_bytes(w) as u64).sum();
//!         out[i] = sum.to_le_bytes();
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let words = jit.upload(&[[0, 0, 1, 2], [0xff; 4]])?;
//! let mut out = jit.upload(&[[0; 8]; 2])?;
//! sums.launch(&jit, (1, 32), &words, &mut out)?;
//! assert_eq!(out.to_vec()?, [0x102_u64.to_le_bytes(), 0x1_0000_0101_u64.to_le_bytes()]);
//! # Ok(())
//! # }
//! ```

use kiln_description::method_name;
use kiln_jit_core::build::Val;
use kiln_jit_core::front::macros::{Front, Operand, Receiver};
use kiln_jit_core::ir::Type;

use super::resolve::{AssociatedFn, Method, methods};
use crate::integer::unsigned;
use crate::math::bits_of;

/// Which byte comes first.
#[derive(Copy, Clone)]
enum Order {
    /// The highest.
    Big,
    /// The lowest, as on every device.
    Little,
}

impl Order {
    /// How far the byte at a place is shifted in a number of so many.
    fn shift(self, place: usize, bytes: usize) -> usize {
        8 * match self {
            Order::Big => bytes - 1 - place,
            Order::Little => place,
        }
    }
}

/// The unsigned integer of a number's size.
fn unsigned_of(ty: Type) -> Type {
    match ty.is_float() {
        true => bits_of(ty),
        false => unsigned(ty),
    }
}

/// The bytes of a number.
fn split<'k>(front: Front<'k>, number: Operand<'k>, bytes: usize, order: Order) -> Operand<'k> {
    let number = number.target().read();
    let ty = number.ty();
    let bits = match ty.is_float() {
        true => number.bitcast(unsigned_of(ty)),
        false => number.cast(unsigned_of(ty)),
    };
    let byte = |place| {
        let by = front
            .builder()
            .lit(bits.ty(), order.shift(place, bytes) as u64);
        front.value((bits >> by).cast(Type::U8))
    };
    let all: Vec<Operand<'k>> = (0..bytes).map(byte).collect();
    front.array(&all)
}

/// The number of these bytes.
fn joined<'k>(
    front: Front<'k>,
    array: Operand<'k>,
    (ty, bytes): (Type, usize),
    order: Order,
) -> Operand<'k> {
    let builder = front.builder();
    let array = array.target().eager();
    let wide = unsigned_of(ty);
    let part = |place: usize| -> Val<'k> {
        let byte = array.element_at(place as u32, false).read().cast(wide);
        byte << builder.lit(wide, order.shift(place, bytes) as u64)
    };
    let bits = (0..bytes).map(part).reduce(|all, part| all | part);
    let bits = bits.unwrap_or_else(|| builder.lit(wide, 0_u64));
    front.value(match ty.is_float() {
        true => bits.bitcast(ty),
        false => bits.cast(ty),
    })
}

/// Methods and functions of numbers, by the order of the bytes.
macro_rules! bytes {
    ($($t:ty)*) => {$(
        bytes! { $t: to_be_bytes, from_be_bytes, Order::Big }
        bytes! { $t: to_le_bytes, from_le_bytes, Order::Little }
        bytes! { $t: to_ne_bytes, from_ne_bytes, Order::Little }
    )*};
    ($t:ty: $to:ident, $from:ident, $order:expr) => {
        methods! { [] $t, Value, false: $to = |front, number| split(front, number, size_of::<$t>(), $order); }

        #[diagnostic::do_not_recommend]
        impl<F> AssociatedFn<{ method_name(stringify!($from)) }, F> for $t {
            fn call<'k>(front: Front<'k>, _: &[Type], args: &[Operand<'k>]) -> Operand<'k> {
                match args {
                    [array] => {
                        let ty = front.builder().device_type::<$t>();
                        joined(front, *array, (ty, size_of::<$t>()), $order)
                    },
                    // rustc has counted them.
                    _ => front.unit(),
                }
            }
        }
    };
}
bytes! { u8 u16 u32 u64 i8 i16 i32 i64 f32 f64 }
