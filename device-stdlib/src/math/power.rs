//! `x^y` as `e^(y ln x)`, with the logarithm and its product in twice the precision; and whole powers, by
//! repeated squaring.

use std::ops::{Div, Mul};

use kiln_jit_core::build::{IntoVal, Val};
use kiln_jit_core::ir::Type;

use super::Math as _;
use super::exponential::{EXP_BOUNDS, EXP_NORMAL, Power, Split, positive, split};
use super::format::{Coefficients, Constant, Format, Pair, exact_product, exact_sum, sum};
use crate::number::Signed as _;

/// 1/3 in two parts.
const THIRD: [Constant; 2] = [
    [0.333333343, 1.0 / 3.0],
    [-9.93410776e-09, 1.850371707708594e-17],
];

/// (atanh(s) / s - 1 - s^2 / 3) / s^4 as a polynomial in s^2, for s^2 up to 0.0295: 2^-36 and
/// 2^-73 of atanh(s) / s.
const ATANH: Coefficients = [
    &[0.200000763, 0.142735466, 0.117097579],
    &[
        0.1999999999999999,
        0.14285714285721926,
        0.11111111108892595,
        0.09090909422349192,
        0.07692279186951298,
        0.0666813338291804,
        0.058378662180637864,
        0.0599108431214888,
    ],
];

/// ln(2) in two parts, of which the first has so few bits that its product with an exponent is
/// exact.
pub(super) const LN_2_SHORT: [Constant; 2] = [
    [0.693145751953125, 0.693_147_180_559_890_3],
    [1.42860682e-06, 5.497923018708371e-14],
];

/// `ln(x)` of a positive number, to about 1.5 times the digits of the format or more.
pub(super) fn precise_ln(x: Val<'_>) -> Pair<'_> {
    let format = Format::of(x);
    let Split { fraction, exponent } = split(x);
    let s = half_quotient(fraction);
    let doubled = Pair {
        high: s.high * format.float(2.0),
        low: s.low * format.float(2.0),
    };
    let t = atanh_tail(s);
    // 2 s + 2 s t
    let product = exact_product(doubled.high, t.high);
    let low = doubled.high.mul_add(t.low, product.low);
    let low = doubled.low.mul_add(t.high, sum(low, doubled.low));
    let of_fraction = exact_sum(doubled.high, product.high);
    let low = sum(of_fraction.low, low);

    let whole = exact_sum(exponent * format.constant(LN_2_SHORT[0]), of_fraction.high);
    let low = exponent.mul_add(format.constant(LN_2_SHORT[1]), low);
    exact_sum(whole.high, sum(whole.low, low))
}

/// `ln(x) / ln(base)`, of logarithms in two parts.
pub(super) fn log<'k>(x: Val<'k>, base: Val<'k>) -> Val<'k> {
    let format = Format::of(x);
    let (over, under) = (precise_ln(x), precise_ln(base));
    // What logarithms are of 0, of negative numbers and such.
    let of_x = positive(x, over.high);
    let of_base = positive(base, under.high);
    let quotient = of_x / of_base;
    let rest = sum(quotient.mul_add(-under.high, over.high), over.low);
    let rest = quotient.mul_add(-under.low, rest);
    let corrected = sum(quotient, rest / under.high);
    let is_number = |value: Val<'k>| {
        let size = value.abs();
        size.gt(format.float(0.0)) & size.lt(format.infinity())
    };
    let is_exact = is_number(of_x) & is_number(of_base);
    is_exact.select(corrected, quotient)
}

/// `f / (2 + f)`.
fn half_quotient(f: Val<'_>) -> Pair<'_> {
    let format = Format::of(f);
    let two = format.float(2.0);
    let divisor = exact_sum(two, f);
    let inverse = match format.is_double() {
        true => format.float(1.0) / divisor.high,
        // Here a division takes longer than the few steps to its digits.
        false => format.reciprocal(divisor.high),
    };
    let high = f * inverse;
    let rest = high.mul_add(-divisor.high, f);
    let rest = high.mul_add(-divisor.low, rest);
    Pair {
        high,
        low: rest * inverse,
    }
}

/// `atanh(s) / s - 1`.
fn atanh_tail(s: Pair<'_>) -> Pair<'_> {
    let format = Format::of(s.high);
    let [third, third_low] = THIRD.map(|part| format.constant(part));
    let z = exact_product(s.high, s.high);
    let z_low = (s.high * format.float(2.0)).mul_add(s.low, z.low);
    let first = exact_product(z.high, third);
    let first_low = z.high.mul_add(third_low, first.low);
    let first_low = z_low.mul_add(third, first_low);
    let higher = format.polynomial(z.high, ATANH) * z.high * z.high;
    let whole = exact_sum(first.high, higher);
    Pair {
        high: whole.high,
        low: sum(whole.low, first_low),
    }
}

/// `x^y` (C23, 7.12.7.5 and F.10.4.5).
pub(super) fn pow<'k>(x: Val<'k>, y: Val<'k>) -> Val<'k> {
    let format = Format::of(x);
    let k = format.builder();
    let ln = precise_ln(x.abs());
    let product = exact_product(ln.high, y);
    let low = ln.low.mul_add(y, product.low);
    let power = Power::of_sum(product.high, Some(low));
    let result = k.var("power", power.normal());
    // Of positive numbers, whose power is normal, that is all.
    let size = product.high.abs();
    let usual = x.gt(format.float(0.0)) & x.lt(format.infinity());
    let usual = usual & size.le(format.constant(EXP_NORMAL));
    k.if_(!usual, || result.set(pow_of_any(x, y, product.high, power)));
    result.get()
}

/// `x^y` of all numbers, by `power`, the exponential of `product`.
fn pow_of_any<'k>(x: Val<'k>, y: Val<'k>, product: Val<'k>, power: Power<'k>) -> Val<'k> {
    let format = Format::of(x);
    let (zero, one) = (format.float(0.0), format.float(1.0));
    let base = x.abs();
    let power = power_of_magnitude(base, y, product, power);

    let half = y * format.float(0.5);
    let integer = y.trunc().eq(y);
    let odd = integer & half.trunc().ne(half);
    let negative = format.bits(x).lt(format.integer(0));
    let sign = (negative & odd).select(format.integer(format.sign_bit()), format.integer(0));
    let signed = format.with_bits(format.bits(power) ^ sign);

    let no_power = x.lt(zero) & !integer & base.lt(format.infinity());
    let result = no_power.select(format.nan(), signed);
    let unordered = x.ne(x) | y.ne(y);
    let result = unordered.select(format.nan(), result);
    (x.eq(one) | y.eq(zero)).select(one, result)
}

/// `base^y` for a base that is not negative; what it gives for NaN does not matter.
fn power_of_magnitude<'k>(
    base: Val<'k>,
    y: Val<'k>,
    product: Val<'k>,
    power: Power<'k>,
) -> Val<'k> {
    let format = Format::of(base);
    let (zero, one) = (format.float(0.0), format.float(1.0));
    let power = power.any(product, EXP_BOUNDS);
    // Out of the range of the exponential the second part may be anything.
    let bound = format.constant([256.0, 2048.0]);
    let overflow = product.gt(zero).select(format.infinity(), zero);
    let power = product.abs().lt(bound).select(power, overflow);

    let rises = y.gt(zero);
    let of_zero = rises.select(zero, format.infinity());
    let of_infinity = rises.select(format.infinity(), zero);
    let power = base.eq(zero).select(of_zero, power);
    let power = base.eq(format.infinity()).select(of_infinity, power);
    base.eq(one).select(one, power)
}

/// `x^n` of a whole number.
#[track_caller]
pub(super) fn powi<'k>(x: Val<'k>, n: impl IntoVal<'k>) -> Val<'k> {
    let one = x.builder().lit(x.ty(), 1.0);
    if let Some(n) = n.known_int().and_then(|n| i32::try_from(n).ok()) {
        return known_power(x, one, n);
    }
    let n = n.into_val(x.builder(), Some(Type::I32));
    let size = n.lt(0).select(-n, n).cast(Type::U32);
    let power = positive_power(x, size, one);
    n.lt(0).select(one / power, power)
}

/// A power whose exponent is known, as multiplications; on the host the same.
pub(super) fn known_power<T>(x: T, one: T, exponent: i32) -> T
where
    T: Copy + Mul<Output = T> + Div<Output = T>,
{
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

/// `x` to the power of `n`, a `u32`, in a loop.
#[track_caller]
pub(crate) fn positive_power<'k>(x: Val<'k>, n: Val<'k>, one: Val<'k>) -> Val<'k> {
    let b = x.builder();
    let (power, square) = (b.var("power", one), b.var("square", x));
    let rest = b.var("rest", n);
    b.while_(
        || rest.get().ne(0),
        || {
            b.if_((rest.get() & 1).ne(0), || {
                power.set(power.get() * square.get())
            });
            rest.set(rest.get() >> 1);
            square.set(square.get() * square.get());
        },
    );
    power.get()
}
