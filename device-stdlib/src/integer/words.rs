//! Instructions of GPUs on integers that Rust has no methods for (CUDA Math API, "Integer Intrinsics"; PTX ISA,
//! "Integer Arithmetic Instructions"), as functions.
//!
//! Where a GPU has no instruction, and on the CPU, they are made of others; the results are the same everywhere.
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn words(x: &[u32], out: &mut [u32], wide: &mut [u64], signed: &mut [i32]) {
//!     out[0] = mul_hi(x[0], 1000);
//!     out[1] = byte_permute(x[0], x[1], 0x0246); // a byte for each digit
//!     out[2] = funnel_shift_left(x[0], x[1], 8);
//!     out[3] = funnel_shift_right(x[0], x[1], 8);
//!     out[4] = bit_field_extract(x[0], 4, 8);
//!     out[5] = bit_field_insert(x[0], 0xff, 4, 8);
//!     out[6] = dp4a(x[0], 0x0101_0101, 0);
//!     out[7] = dp2a_lo(x[0], 0x0201, dp2a_hi(x[0], 0x0201_0000, 0));
//!     out[8] = sad(3, 5, 40);
//!     wide[0] = mul_hi(wide[0], wide[0]);
//!     signed[0] = dp4a(-1, 0x0101_0101, 2);
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let x = jit.upload(&[0x8877_6655u32, 0x4433_2211])?;
//! let (mut out, mut wide) = (jit.zeros(9)?, jit.upload(&[1u64 << 63])?);
//! let mut signed = jit.zeros(1)?;
//! words.launch(&jit, (1, 1), &x, &mut out, &mut wide, &mut signed)?;
//! let sum = 0x88 + 0x77 + 0x66 + 0x55;
//! assert_eq!(out.to_vec()?, [
//!     533, 0x5577_1133, 0x3322_1188, 0x1188_7766, 0x65, 0x8877_6ff5, sum,
//!     2 * (0x6655 + 2 * 0x8877), 42,
//! ]);
//! assert_eq!((wide.to_vec()?[0], signed.to_vec()?[0]), (1 << 62, -2));
//! # Ok(())
//! # }
//! ```

use kiln_jit_core::build::{DeviceFn, Val};
use kiln_jit_core::ir::{Cell, Family, Meaning, Module, Scalar, Type};

use super::is_signed;
use crate::plain::number::Int;
use crate::table::operations;

/// An instruction on a field of 64 bits, whose start and length count modulo 256. `ptxas` makes several instructions of it,
/// which take all of both (seen on an H100 with driver 580), where PTX ISA has it that their lowest bytes count.
macro_rules! in_bytes {
    ($instruction:literal, $start:literal, $len:literal) => {
        concat!(
            "{ .reg .b32 at, len; and.b32 at, ",
            $start,
            ", 255; and.b32 len, ",
            $len,
            ", 255; ",
            $instruction,
            " }"
        )
    };
}

operations! {
    /// Instructions of GPUs on integers, as methods of the builder.
    builder Words;

    /// The upper half of the product (CUDA `__mulhi`, `__umulhi`, `__mul64hi`, `__umul64hi`; PTX `mul.hi`).
    fn mul_hi<T: Int = [i32, u32, i64, u64]>(x: T, y: T) -> T {
        host::mul_hi(x, y)
    } = row("integer.mul_hi", Meaning::Body(mul_hi_body)).with_cells(&[
        ptx(Scalar::I64, "mul.hi.s64 $0, $1, $2;", "=l,l,l"),
        ptx(Scalar::U64, "mul.hi.u64 $0, $1, $2;", "=l,l,l"),
    ]);

    /// The sum of `sum` and the products of the four bytes of `x` with those of `y`, which have the sign that the type
    /// has, modulo 2^32 (CUDA `__dp4a`; PTX `dp4a`).
    fn dp4a<T: Int = [i32, u32]>(x: T, y: T, sum: T) -> T {
        host::dp4a(x, y, sum)
    } = row("integer.dp4a", Meaning::Body(dp4a_body)).with_cells(&[
        ptx(Scalar::I32, "dp4a.s32.s32 $0, $1, $2, $3;", "=r,r,r,r"),
        ptx(Scalar::U32, "dp4a.u32.u32 $0, $1, $2, $3;", "=r,r,r,r"),
    ]);

    /// The sum of `sum` and the products of the two halves of `x` with the two lower bytes of `y`, which have the sign that
    /// the type has, modulo 2^32 (CUDA `__dp2a_lo`; PTX `dp2a.lo`).
    fn dp2a_lo<T: Int = [i32, u32]>(x: T, y: T, sum: T) -> T {
        host::dp2a(x, y, sum, 0)
    } = row("integer.dp2a_lo", Meaning::Body(|scalar| dp2a_body("dp2a_lo", scalar, 0))).with_cells(&[
        ptx(Scalar::I32, "dp2a.lo.s32.s32 $0, $1, $2, $3;", "=r,r,r,r"),
        ptx(Scalar::U32, "dp2a.lo.u32.u32 $0, $1, $2, $3;", "=r,r,r,r"),
    ]);

    /// The sum of `sum` and the products of the two halves of `x` with the two upper bytes of `y`, which have the sign that
    /// the type has, modulo 2^32 (CUDA `__dp2a_hi`; PTX `dp2a.hi`).
    fn dp2a_hi<T: Int = [i32, u32]>(x: T, y: T, sum: T) -> T {
        host::dp2a(x, y, sum, 2)
    } = row("integer.dp2a_hi", Meaning::Body(|scalar| dp2a_body("dp2a_hi", scalar, 2))).with_cells(&[
        ptx(Scalar::I32, "dp2a.hi.s32.s32 $0, $1, $2, $3;", "=r,r,r,r"),
        ptx(Scalar::U32, "dp2a.hi.u32.u32 $0, $1, $2, $3;", "=r,r,r,r"),
    ]);

    /// The sum of `sum` and the difference of `x` and `y`, whichever is larger, modulo 2^32 (CUDA `__sad`, `__usad`; PTX
    /// `sad`).
    fn sad<T: Int = [i32, u32]>(x: T, y: T, sum: u32) -> u32 {
        host::sad(x, y, sum)
    } = row("integer.sad", Meaning::Body(sad_body)).with_cells(&[
        ptx(Scalar::I32, "sad.s32 $0, $1, $2, $3;", "=r,r,r,r"),
        ptx(Scalar::U32, "sad.u32 $0, $1, $2, $3;", "=r,r,r,r"),
    ]);

    /// Four bytes of the eight of `y` and `x`, those of `x` are the lower ones, each chosen by four bits of `selector`:
    /// three say which, and with the fourth its sign stands in all of its bits (CUDA `__byte_perm`; PTX `prmt`).
    fn byte_permute(x: u32, y: u32, selector: u32) -> u32 {
        host::byte_permute(x, y, selector)
    } = row("integer.byte_permute", Meaning::Body(byte_permute_body)).with_cells(&[
        ptx(Scalar::U32, "prmt.b32 $0, $1, $2, $3;", "=r,r,r,r"),
    ]);

    /// The upper half of the 64 bits of `high` and `low`, shifted to the left by the amount modulo 32 (CUDA
    /// `__funnelshift_l`; PTX `shf.l.wrap`).
    fn funnel_shift_left(low: u32, high: u32, amount: u32) -> u32 {
        host::funnel(low, high, amount, true)
    } = row("integer.funnel_shift_left", Meaning::Body(|_| funnel_body(true))).with_cells(&[
        ptx(Scalar::U32, "shf.l.wrap.b32 $0, $1, $2, $3;", "=r,r,r,r"),
    ]);

    /// The lower half of the 64 bits of `high` and `low`, shifted to the right by the amount modulo 32 (CUDA
    /// `__funnelshift_r`; PTX `shf.r.wrap`).
    fn funnel_shift_right(low: u32, high: u32, amount: u32) -> u32 {
        host::funnel(low, high, amount, false)
    } = row("integer.funnel_shift_right", Meaning::Body(|_| funnel_body(false))).with_cells(&[
        ptx(Scalar::U32, "shf.r.wrap.b32 $0, $1, $2, $3;", "=r,r,r,r"),
    ]);

    /// The `len` bits of `x` from bit `start` on, with zeros above or, of a signed integer, what the highest of them is,
    /// or that of `x` where they go beyond it (PTX `bfe`); start and length count modulo 256.
    fn bit_field_extract<T: Int = [i32, u32, i64, u64]>(x: T, start: u32, len: u32) -> T {
        host::extract(x, start, len)
    } = row("integer.bit_field_extract", Meaning::Body(extract_body)).with_cells(&[
        ptx(Scalar::I32, "bfe.s32 $0, $1, $2, $3;", "=r,r,r,r"),
        ptx(Scalar::U32, "bfe.u32 $0, $1, $2, $3;", "=r,r,r,r"),
        ptx(Scalar::I64, in_bytes!("bfe.s64 $0, $1, at, len;", "$2", "$3"), "=l,l,r,r"),
        ptx(Scalar::U64, in_bytes!("bfe.u64 $0, $1, at, len;", "$2", "$3"), "=l,l,r,r"),
    ]);

    /// `x` with the lower `len` bits of `field` in place of its own from bit `start` on (PTX `bfi`, whose first two
    /// operands are the other way round); start and length count modulo 256.
    fn bit_field_insert<T: Int = [u32, u64]>(x: T, field: T, start: u32, len: u32) -> T {
        host::insert(x, field, start, len)
    } = row("integer.bit_field_insert", Meaning::Body(insert_body)).with_cells(&[
        ptx(Scalar::U32, "bfi.b32 $0, $2, $1, $3, $4;", "=r,r,r,r,r"),
        ptx(Scalar::U64, in_bytes!("bfi.b64 $0, $2, $1, at, len;", "$3", "$4"), "=l,l,l,r,r"),
    ]);
}

/// A cell of inline PTX.
const fn ptx(ty: Scalar, template: &'static str, constraints: &'static str) -> Cell {
    Cell::asm(Family::Ptx { min_sm: 0 }, Some(ty), template, constraints)
}

/// A function as a module.
fn body<const N: usize>(
    name: &str,
    params: [(&str, Type); N],
    body: impl for<'k> Fn([Val<'k>; N]) -> Val<'k>,
) -> Option<Module> {
    let function = DeviceFn::build(name, |k| {
        let args = params.map(|(param, ty)| k.param(param, ty));
        k.return_value(body(args));
    });
    function.ok().map(|f| f.module())
}

/// The name of a function for a type.
fn named(name: &str, scalar: Scalar) -> String {
    format!("integer.{name}.{}", scalar.name())
}

fn mul_hi_body(scalar: Scalar) -> Option<Module> {
    let ty = Type::scalar(scalar);
    body(
        &named("mul_hi", scalar),
        [("x", ty), ("y", ty)],
        |[x, y]| high_half(x, y),
    )
}

/// The upper half of a product of two integers of 32 or 64 bits.
#[track_caller]
pub(super) fn high_half<'k>(x: Val<'k>, y: Val<'k>) -> Val<'k> {
    let ty = x.ty();
    let wide = if is_signed(ty) { Type::I64 } else { Type::U64 };
    match ty {
        Type::I32 | Type::U32 => ((x.cast(wide) * y.cast(wide)) >> 32u32).cast(ty),
        Type::I64 => {
            let unsigned = high_of_longs(x.cast(Type::U64), y.cast(Type::U64)).cast(ty);
            // A negative factor is 2^64 less than its bits.
            unsigned - ((x >> 63u32) & y) - ((y >> 63u32) & x)
        }
        _ => high_of_longs(x, y),
    }
}

/// The upper half of a product of two `u64`, by halves of 32 bits.
#[track_caller]
fn high_of_longs<'k>(x: Val<'k>, y: Val<'k>) -> Val<'k> {
    let half = |v: Val<'k>| {
        let low = v & v.builder().lit(Type::U64, 0xffff_ffff_u64);
        (low, v >> 32u32)
    };
    let ((x_low, x_high), (y_low, y_high)) = (half(x), half(y));
    let low = (x_low * y_low) >> 32u32;
    let (first, first_carry) = half(x_high * y_low + low);
    let second = (x_low * y_high + first) >> 32u32;
    x_high * y_high + first_carry + second
}

fn dp4a_body(scalar: Scalar) -> Option<Module> {
    let ty = Type::scalar(scalar);
    let params = [("x", ty), ("y", ty), ("sum", ty)];
    body(&named("dp4a", scalar), params, |[x, y, sum]| {
        (0..4u32).fold(sum, |sum, i| {
            // With the byte at the top the shift brings its sign.
            let [a, b] = [x, y].map(|word| (word << (24 - 8 * i)) >> 24u32);
            sum + a * b
        })
    })
}

/// The products with the bytes of the second factor from `first` on.
fn dp2a_body(name: &str, scalar: Scalar, first: u32) -> Option<Module> {
    let ty = Type::scalar(scalar);
    let params = [("x", ty), ("y", ty), ("sum", ty)];
    body(&named(name, scalar), params, |[x, y, sum]| {
        (0..2u32).fold(sum, |sum, i| {
            // At the top, the shift to the right brings the sign.
            let half = (x << (16 - 16 * i)) >> 16u32;
            let byte = (y << (24 - 8 * (first + i))) >> 24u32;
            sum + half * byte
        })
    })
}

fn sad_body(scalar: Scalar) -> Option<Module> {
    let ty = Type::scalar(scalar);
    let params = [("x", ty), ("y", ty), ("sum", Type::U32)];
    body(&named("sad", scalar), params, |[x, y, sum]| {
        (x.max(y) - x.min(y)).cast(Type::U32) + sum
    })
}

fn byte_permute_body(_: Scalar) -> Option<Module> {
    let params = ["x", "y", "selector"].map(|name| (name, Type::U32));
    body("integer.byte_permute", params, |[x, y, selector]| {
        let long = (y.cast(Type::U64) << 32u32) | x.cast(Type::U64);
        let byte = |i: u32| {
            let chosen = (selector >> (4 * i)) & 15u32;
            let shift = ((chosen & 7u32) << 3u32).cast(Type::U64);
            let byte = (long >> shift).cast(Type::U32) & 255u32;
            let sign = (byte >> 7u32) * 255u32;
            chosen.ge(8u32).select(sign, byte) << (8 * i)
        };
        byte(0) | byte(1) | byte(2) | byte(3)
    })
}

fn funnel_body(left: bool) -> Option<Module> {
    let name = if left { "left" } else { "right" };
    let params = ["low", "high", "amount"].map(|name| (name, Type::U32));
    let name = format!("integer.funnel_shift_{name}");
    body(&name, params, |[low, high, amount]| {
        let back = amount ^ 31u32;
        match left {
            true => (high << amount) | ((low >> 1u32) >> back),
            false => (low >> amount) | ((high << 1u32) << back),
        }
    })
}

/// Ones in the lowest bits, as many as `len` says, which is at most the width.
#[track_caller]
fn ones<'k>(ty: Type, len: Val<'k>) -> Val<'k> {
    let b = len.builder();
    let width = b.lit(Type::U32, ty.as_scalar().map_or(32, Scalar::bits));
    let all = !b.zero(ty);
    let some = !(all << len.cast(ty));
    len.ge(width).select(all, some)
}

/// `x` shifted by an amount of which all bits count: beyond the width nothing is left, or the sign.
#[track_caller]
fn shifted_far<'k>(x: Val<'k>, by: Val<'k>, left: bool) -> Val<'k> {
    let shifted = super::overflow::shifted(x, by, left);
    shifted.or(super::overflow::shifted_out(x, left))
}

fn extract_body(scalar: Scalar) -> Option<Module> {
    let ty = Type::scalar(scalar);
    let params = [("x", ty), ("start", Type::U32), ("len", Type::U32)];
    body(
        &named("bit_field_extract", scalar),
        params,
        |[x, start, len]| {
            let width = scalar.bits();
            let (start, len) = (start & 255u32, len & 255u32);
            let field = shifted_far(x, start, false);
            let kept = field & ones(ty, len);
            if !is_signed(ty) {
                return kept;
            }
            // The field at the top, and down again with its sign; one that reaches beyond the number has it already.
            let up = x.builder().lit(Type::U32, width) - len.min(x.builder().lit(Type::U32, width));
            let signed = (field << up.cast(ty)) >> up.cast(ty);
            len.eq(0u32).select(x.builder().zero(ty), signed)
        },
    )
}

fn insert_body(scalar: Scalar) -> Option<Module> {
    let ty = Type::scalar(scalar);
    let params = [
        ("x", ty),
        ("field", ty),
        ("start", Type::U32),
        ("len", Type::U32),
    ];
    body(
        &named("bit_field_insert", scalar),
        params,
        |[x, field, start, len]| {
            let (start, len) = (start & 255u32, len & 255u32);
            let mask = shifted_far(ones(ty, len), start, true);
            (x & !mask) | (shifted_far(field, start, true) & mask)
        },
    )
}

/// What the functions are on the host.
mod host {
    use super::*;

    fn bits<T: Int>() -> u32 {
        8 * size_of::<T>() as u32
    }

    /// The bits, as an unsigned integer.
    fn raw<T: Int>(x: T) -> u128 {
        x.to_i128() as u128 & (u128::MAX >> (128 - bits::<T>()))
    }

    pub(super) fn mul_hi<T: Int>(x: T, y: T) -> T {
        let product = x.to_i128().wrapping_mul(y.to_i128());
        T::from_i128(product >> bits::<T>())
    }

    pub(super) fn dp4a<T: Int>(x: T, y: T, sum: T) -> T {
        let is_signed = T::from_i32(-1) < T::ZERO;
        let byte = |word: T, i: u32| {
            let byte = (raw(word) >> (8 * i)) as u8;
            if is_signed {
                i128::from(byte as i8)
            } else {
                i128::from(byte)
            }
        };
        T::from_i128((0..4).fold(sum.to_i128(), |sum, i| sum + byte(x, i) * byte(y, i)))
    }

    pub(super) fn dp2a<T: Int>(x: T, y: T, sum: T, first: u32) -> T {
        let is_signed = T::from_i32(-1) < T::ZERO;
        let part = |word: T, from: u32, bits: u32| {
            let part = (raw(word) >> from) as i128 & ((1 << bits) - 1);
            let is_negative = is_signed && part >> (bits - 1) == 1;
            part - (i128::from(is_negative) << bits)
        };
        let product = |i: u32| part(x, 16 * i, 16) * part(y, 8 * (first + i), 8);
        T::from_i128(sum.to_i128() + product(0) + product(1))
    }

    pub(super) fn sad<T: Int>(x: T, y: T, sum: u32) -> u32 {
        let difference = (x.to_i128() - y.to_i128()).unsigned_abs() as u32;
        sum.wrapping_add(difference)
    }

    pub(super) fn byte_permute(x: u32, y: u32, selector: u32) -> u32 {
        let bytes = (u64::from(y) << 32 | u64::from(x)).to_le_bytes();
        let byte = |i: u32| {
            let chosen = selector >> (4 * i) & 15;
            let byte = bytes[(chosen & 7) as usize];
            if chosen < 8 {
                byte
            } else {
                ((byte as i8) >> 7) as u8
            }
        };
        u32::from_le_bytes([0, 1, 2, 3].map(byte))
    }

    pub(super) fn funnel(low: u32, high: u32, amount: u32, left: bool) -> u32 {
        let both = u64::from(high) << 32 | u64::from(low);
        match left {
            true => (both << (amount & 31) >> 32) as u32,
            false => (both >> (amount & 31)) as u32,
        }
    }

    pub(super) fn extract<T: Int>(x: T, start: u32, len: u32) -> T {
        let (start, len) = (start & 255, len & 255);
        if len == 0 {
            return T::ZERO;
        }
        // Above the number is its sign.
        let field = x.to_i128() >> start.min(127);
        let unused = 128 - len.min(128);
        match T::from_i32(-1) < T::ZERO {
            true => T::from_i128(field << unused >> unused),
            false => T::from_i128((((field as u128) << unused) >> unused) as i128),
        }
    }

    pub(super) fn insert<T: Int>(x: T, field: T, start: u32, len: u32) -> T {
        let (start, len) = (start & 255, len & 255);
        let mask = match len {
            0 => 0,
            _ => (u128::MAX >> (128 - len.min(128)))
                .checked_shl(start)
                .unwrap_or(0),
        };
        let moved = raw(field).checked_shl(start).unwrap_or(0);
        T::from_i128(((raw(x) & !mask) | (moved & mask)) as i128)
    }
}
