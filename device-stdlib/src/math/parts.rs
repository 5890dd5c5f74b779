//! What a float is made of: its nearest integers, its exponent, its class, its neighbours. All of it is exact.

use kiln_jit_core::build::Val;
use kiln_jit_core::ir::{Scalar, Type};

use super::format::{Constant, Format, difference, sum};
use super::rows::pair;
use super::{Math as _, bits_of};
use crate::number::Signed as _;

/// The largest numbers below 1/2: with 1/2 itself the sum of what is just below it would be 1.
const BELOW_HALF: Constant = [0.499_999_97, 0.499_999_999_999_999_94];

/// `round(x)`: ties away from zero.
pub(super) fn round(x: Val<'_>) -> Val<'_> {
    let half = Format::of(x).constant(BELOW_HALF);
    sum(x, half.copysign(x)).trunc()
}

/// `fract(x)`.
pub(super) fn fract(x: Val<'_>) -> Val<'_> {
    difference(x, x.trunc())
}

/// `modf(x)` (C23, 7.12.6.18).
pub(super) fn modf(x: Val<'_>) -> [Val<'_>; 2] {
    let format = Format::of(x);
    let infinite = x.abs().eq(format.infinity());
    let fraction = infinite.select(format.float(0.0), fract(x));
    [fraction.copysign(x), x.trunc()]
}

/// `fdim(x, y)` (C23, 7.12.12.1).
pub(super) fn fdim<'k>(x: Val<'k>, y: Val<'k>) -> Val<'k> {
    // Of equal infinities the difference is none.
    let less = x.le(y);
    less.select(Format::of(x).float(0.0), difference(x, y))
}

/// `remainder(x, y)` (IEEE 754, 5.3.1).
pub(super) fn remainder<'k>(x: Val<'k>, y: Val<'k>) -> Val<'k> {
    let [remainder, _] = nearest_multiple(x, y);
    remainder
}

/// `remquo(x, y)` (C23, 7.12.10.3), with three bits of the quotient.
pub(super) fn remquo<'k>(x: Val<'k>, y: Val<'k>) -> Val<'k> {
    let [remainder, quotient] = nearest_multiple(x, y);
    pair(remainder, quotient)
}

/// The remainder, and the lowest bits of the quotient with its sign. Of what is left below eight times the divisor four
/// times, twice and once that are taken away where they are not more; no step rounds. A multiple that is too large for
/// the format is infinite, and so never taken away.
fn nearest_multiple<'k>(x: Val<'k>, y: Val<'k>) -> [Val<'k>; 2] {
    let (format, b) = (Format::of(x), y.abs());
    let times = |v: Val<'k>, n: i32| v * format.float(n.into());
    let bit = |taken: Val<'k>, n: i32| {
        let [some, none] = [n, 0].map(|n| x.builder().lit(Type::I32, n));
        taken.select(some, none)
    };
    let mut rest = x.abs() % times(b, 8);
    let mut quotient = x.builder().lit(Type::I32, 0);
    for n in [4, 2] {
        let taken = rest.ge(times(b, n));
        rest = taken.select(difference(rest, times(b, n)), rest);
        quotient = quotient + bit(taken, n);
    }
    // Below twice the divisor: of two multiples that are as near, the even one.
    let first = times(rest, 2).gt(b);
    let less = difference(rest, b);
    let second = first & times(less, 2).ge(b);
    rest = second.select(difference(less, b), first.select(less, rest));
    quotient = (quotient + bit(first, 1) + bit(second, 1)) & x.builder().lit(Type::I32, 7);
    let signs = [x, y].map(super::sign);
    let negative = signs[0].ne(signs[1]);
    [rest * signs[0], negative.select(-quotient, quotient)]
}

/// 180 / pi.
const DEGREES: Constant = [57.295_779_513_082_32, 57.295_779_513_082_32];
/// pi / 180, which Rust has as a quotient in each type.
const RADIANS: Constant = [
    (std::f32::consts::PI / 180.0) as f64,
    std::f64::consts::PI / 180.0,
];

pub(super) fn to_degrees(x: Val<'_>) -> Val<'_> {
    x * Format::of(x).constant(DEGREES)
}

pub(super) fn to_radians(x: Val<'_>) -> Val<'_> {
    x * Format::of(x).constant(RADIANS)
}

/// `x * 2^n`, rounded once.
///
/// Two factors take what is beyond the exponents of normal numbers. A product that is subnormal before the last
/// factor is so small that the result is zero, however it was rounded.
pub(super) fn ldexp<'k>(x: Val<'k>, n: Val<'k>) -> Val<'k> {
    let format = Format::of(x);
    let int = |n: i64| format.integer(n);
    let (least, most) = (1 - format.bias, format.bias);
    let (mut y, mut n) = (x, n.cast(format.int));
    for _ in 0..2 {
        let beyond = n.gt(int(most)).select(int(most), int(0));
        let by = n
            .lt(int(least))
            .select(int(least + format.digits + 1), beyond);
        y = y * format.power_of_two(by);
        n = n - by;
    }
    y * format.power_of_two(n.max(int(least)).min(int(most)))
}

/// A magnitude whose exponent field is its exponent, and what the exponent has to be lowered by: numbers below the
/// normal ones have none of their own.
fn normalized(x: Val<'_>) -> (Val<'_>, Val<'_>) {
    let format = Format::of(x);
    let shift = format.digits + 1;
    let least_normal = format.float((1.0 - format.bias as f64).exp2());
    let tiny = x.abs().lt(least_normal);
    let raised = x * format.float((shift as f64).exp2());
    let bits = format.bits(tiny.select(raised, x));
    (bits, tiny.select(format.integer(shift), format.integer(0)))
}

/// The exponent of a number that is neither 0 nor infinite nor NaN.
fn exponent<'k>(format: Format<'k>, (bits, lowered): (Val<'k>, Val<'k>)) -> Val<'k> {
    let magnitude = bits & format.integer(!format.sign_bit());
    (magnitude >> format.integer(format.digits)) - format.integer(format.bias) - lowered
}

/// Whether a number has an exponent: it is neither 0 nor infinite nor NaN.
fn has_exponent(x: Val<'_>) -> Val<'_> {
    x.is_finite() & x.ne(Format::of(x).float(0.0))
}

/// `frexp(x)` (C23, 7.12.6.7).
pub(super) fn frexp(x: Val<'_>) -> Val<'_> {
    let format = Format::of(x);
    let number = normalized(x);
    let field = ((1 << (format.width() - 1 - format.digits)) - 1) << format.digits;
    let half = format.integer((format.bias - 1) << format.digits);
    let fraction = format.with_bits((number.0 & format.integer(!field)) | half);
    let exponent = (exponent(format, number) + format.integer(1)).cast(Type::I32);
    let zero = format.builder().lit(Type::I32, 0);
    let has_one = has_exponent(x);
    pair(has_one.select(fraction, x), has_one.select(exponent, zero))
}

/// `ilogb(x)` (C23, 7.12.6.8), with CUDA's results for what has no exponent.
pub(super) fn ilogb(x: Val<'_>) -> Val<'_> {
    let format = Format::of(x);
    let of_i32 = |n: i32| format.builder().lit(Type::I32, n);
    let exponent = exponent(format, normalized(x)).cast(Type::I32);
    let infinite = x.abs().eq(format.infinity());
    let of_others = infinite.select(of_i32(i32::MAX), of_i32(i32::MIN));
    has_exponent(x).select(exponent, of_others)
}

/// `logb(x)` (C23, 7.12.6.17).
pub(super) fn logb(x: Val<'_>) -> Val<'_> {
    let format = Format::of(x);
    let exponent = exponent(format, normalized(x)).cast(format.ty);
    let is_zero = x.eq(format.float(0.0));
    let of_others = is_zero.select(format.float(f64::NEG_INFINITY), x.abs());
    has_exponent(x).select(exponent, of_others)
}

/// The bits of a float whose type is known.
#[derive(Copy, Clone)]
pub(super) struct Bits<'k> {
    /// The bits, as an unsigned integer.
    bits: Val<'k>,
    float: Type,
    /// The bits of infinity: an exponent field of ones.
    infinity: u64,
    /// The bit of the sign.
    sign: u64,
}

impl<'k> Bits<'k> {
    /// What `of` makes of the bits; where the type is not known, what is left of the refusal.
    #[track_caller]
    pub(super) fn map(x: Val<'k>, of: fn(Self) -> Val<'k>) -> Val<'k> {
        let digits = match x.ty().as_scalar() {
            Some(Scalar::F16) => 10,
            Some(Scalar::BF16) => 7,
            Some(Scalar::F32) => 23,
            Some(Scalar::F64) => 52,
            Some(
                Scalar::Bool
                | Scalar::I8
                | Scalar::I16
                | Scalar::I32
                | Scalar::I64
                | Scalar::U8
                | Scalar::U16
                | Scalar::U32
                | Scalar::U64,
            )
            | None => {
                let message = "this method is for floats whose type is known, `f32` for instance";
                return x.builder().intrinsic_error(message.to_owned(), x.ty());
            }
        };
        let width = x.ty().as_scalar().map_or(32, Scalar::bits);
        let sign = 1u64 << (width - 1);
        of(Bits {
            bits: x.bitcast(bits_of(x.ty())),
            float: x.ty(),
            infinity: sign - (1 << digits),
            sign,
        })
    }

    fn lit(self, bits: u64) -> Val<'k> {
        self.bits.builder().lit(self.bits.ty(), bits)
    }

    fn magnitude(self) -> Val<'k> {
        self.bits & self.lit(self.sign - 1)
    }

    /// Whether the number is normal.
    pub(super) fn is_normal(self) -> Val<'k> {
        let exponent = self.bits & self.lit(self.infinity);
        exponent.ne(self.lit(0)) & exponent.ne(self.lit(self.infinity))
    }

    /// Whether the number is subnormal.
    pub(super) fn is_subnormal(self) -> Val<'k> {
        let exponent = self.bits & self.lit(self.infinity);
        exponent.eq(self.lit(0)) & self.magnitude().ne(self.lit(0))
    }

    /// The least number that is greater.
    pub(super) fn next_up(self) -> Val<'k> {
        self.neighbour(self.lit(0), self.lit(1), self.lit(self.infinity))
    }

    /// The largest number that is less.
    pub(super) fn next_down(self) -> Val<'k> {
        let (sign, infinity) = (self.sign, self.infinity);
        self.neighbour(
            self.lit(sign),
            self.lit(sign | 1),
            self.lit(sign | infinity),
        )
    }

    /// The neighbour in the direction of a sign. From a zero it is `least`, from `last` the number itself, and from NaN.
    fn neighbour(self, sign: Val<'k>, least: Val<'k>, last: Val<'k>) -> Val<'k> {
        let Bits { bits, .. } = self;
        let magnitude = self.magnitude();
        let same_sign = (bits & self.lit(self.sign)).eq(sign);
        let next = same_sign.select(bits + self.lit(1), bits - self.lit(1));
        let next = magnitude.eq(self.lit(0)).select(least, next);
        let stays = magnitude.gt(self.lit(self.infinity)) | bits.eq(last);
        stays.select(bits, next).bitcast(self.float)
    }
}
