//! Exponentials, logarithms, the hyperbolic tangent.
//!
//! The argument is reduced to a small interval around zero, there a polynomial is computed, and
//! the result put together again. The polynomials are minimax in relative error, fitted with
//! coefficients rounded one after the other to the format.

use kiln_jit_core::build::Val;

use super::Math as _;
use super::format::{Coefficients, Constant, Format, difference, exact_product, sum};
use super::hyperbolic::EXP_M1;
use crate::number::Signed as _;

pub(super) const LOG2_E: Constant = [std::f32::consts::LOG2_E as f64, std::f64::consts::LOG2_E];
/// log2(e) less [`LOG2_E`].
const LOG2_E_LOW: Constant = [1.92596303e-08, 2.0355273740931033e-17];
pub(super) const LN_2: Constant = [std::f32::consts::LN_2 as f64, std::f64::consts::LN_2];
/// ln(2) less [`LN_2`].
pub(super) const LN_2_LOW: Constant = [-1.90465421e-09, 2.3190468138462996e-17];
const LOG10_E: Constant = [std::f32::consts::LOG10_E as f64, std::f64::consts::LOG10_E];
/// log10(e) less [`LOG10_E`].
const LOG10_E_LOW: Constant = [-1.010305e-08, 1.098319650216765e-17];
const LOG10_2: Constant = [std::f32::consts::LOG10_2 as f64, std::f64::consts::LOG10_2];
/// log10(2) less [`LOG10_2`].
const LOG10_2_LOW: Constant = [-1.43209888e-08, -2.8037281277851704e-18];

/// exp(f) for |f| <= ln(2) / 2: relative error 2^-28 and 2^-57.
const EXP: Coefficients = [
    &[
        1.0,
        1.0,
        0.49999994,
        0.166665167,
        0.0416682735,
        0.00836924929,
        0.00138213939,
    ],
    &[
        1.0,
        1.0,
        0.5000000000000011,
        0.16666666666666402,
        0.04166666666652294,
        0.008333333333498349,
        0.00138888889461047,
        0.00019841269504844065,
        2.480149007960406e-05,
        2.7557581711372527e-06,
        2.763145699753762e-07,
        2.500353869636953e-08,
    ],
];

/// Arguments beyond which the exponential gives zero, and overflows; the integers in between are
/// those [`Format::scaled`] takes.
pub(super) const EXP_BOUNDS: [Constant; 2] = [[-104.0, -746.0], [89.0, 710.0]];
const EXP2_BOUNDS: [Constant; 2] = [[-151.0, -1076.0], [128.0, 1024.0]];
/// Magnitudes up to which the power is normal, whichever way its factor below 2 is rounded.
pub(super) const EXP_NORMAL: Constant = [86.5, 708.0];
const EXP2_NORMAL: Constant = [125.0, 1021.0];

/// `e^x`.
pub(super) fn exp(x: Val<'_>) -> Val<'_> {
    exp_of_sum(x, None)
}

/// `e^(x + low)`; `low` is small beside `x`.
pub(super) fn exp_of_sum<'k>(x: Val<'k>, low: Option<Val<'k>>) -> Val<'k> {
    let power = Power::of_sum(x, low);
    power.in_range(x, EXP_NORMAL, EXP_BOUNDS)
}

/// `x` less a multiple of ln(2), at most half of that in magnitude, and which multiple it was; `per_unit` is how many there
/// are in 1, and `unit` how much one is, in two parts.
fn exp_reduced<'k>(x: Val<'k>, per_unit: Constant, unit: [Constant; 2]) -> (Val<'k>, Val<'k>) {
    let format = Format::of(x);
    let (j, n) = format.rounded_product(x, format.constant(per_unit));
    let f = unit
        .iter()
        .fold(x, |rest, &part| j.mul_add(-format.constant(part), rest));
    (f, n)
}

/// `2^x`.
pub(super) fn exp2(x: Val<'_>) -> Val<'_> {
    let format = Format::of(x);
    let (j, n) = format.rounded_product(x, format.float(1.0));
    let f = difference(x, j) * format.constant(LN_2);
    let power = Power {
        factor: format.polynomial(f, EXP),
        n,
    };
    power.in_range(x, EXP2_NORMAL, EXP2_BOUNDS)
}

/// `factor * 2^n`, `factor` from `sqrt(1/2)` to `sqrt(2)`.
#[derive(Copy, Clone)]
pub(super) struct Power<'k> {
    factor: Val<'k>,
    n: Val<'k>,
}

impl<'k> Power<'k> {
    /// `e^(x + low)`; `low` is small beside `x`.
    pub(super) fn of_sum(x: Val<'k>, low: Option<Val<'k>>) -> Power<'k> {
        let (f, n) = exp_reduced(x, LOG2_E, [LN_2, LN_2_LOW]);
        let f = low.map_or(f, |low| sum(f, low));
        Power {
            factor: Format::of(x).polynomial(f, EXP),
            n,
        }
    }

    /// The product with a number, neither of them next to the largest or the least of the format; it rounds the power once
    /// more.
    pub(super) fn times(self, factor: Val<'k>) -> Val<'k> {
        Format::of(factor).scaled(factor * self.factor, self.n)
    }

    /// The power, where that is normal: `n` is added to the exponent of the factor.
    pub(super) fn normal(self) -> Val<'k> {
        Format::of(self.factor).times_power_of_two(self.factor, self.n)
    }

    /// The power of any number `x`, 0 below the first bound and infinite from the second on; it rounds once.
    pub(super) fn any(self, x: Val<'k>, bounds: [Constant; 2]) -> Val<'k> {
        let format = Format::of(x);
        let [below, above] = bounds.map(|bound| format.constant(bound));
        let scaled = format.scaled(self.factor, self.n);
        let scaled = x.ge(above).select(format.infinity(), scaled);
        x.lt(below).select(format.float(0.0), scaled)
    }

    /// The power of any number `x`, whose magnitude is seldom more than `normal`, up to which the power is that.
    fn in_range(self, x: Val<'k>, normal: Constant, bounds: [Constant; 2]) -> Val<'k> {
        let format = Format::of(x);
        let k = format.builder();
        let power = k.var("power", self.normal());
        k.if_(!x.abs().le(format.constant(normal)), || {
            power.set(self.any(x, bounds))
        });
        power.get()
    }
}

const LOG2_10: Constant = [std::f32::consts::LOG2_10 as f64, std::f64::consts::LOG2_10];
/// log10(2) in two parts, of which the first has so few bits that its product with an exponent is exact.
const LOG10_2_SHORT: [Constant; 2] = [
    [0.301025390625, 0.30102999566361177],
    [4.60503907e-06, 3.694239077158931e-13],
];
const LN_10: Constant = [std::f32::consts::LN_10 as f64, std::f64::consts::LN_10];
/// ln(10) less [`LN_10`].
const LN_10_LOW: Constant = [-3.19754356e-08, -2.1707562233822494e-16];

/// `10^x`, with the argument that is left of the reduction in two parts.
pub(super) fn exp10(x: Val<'_>) -> Val<'_> {
    let format = Format::of(x);
    // Beyond these the result is 0 or infinite, by the factors of `scaled`.
    let bounded = x.max(format.constant([-50.0, -350.0]));
    let bounded = bounded.min(format.constant([40.0, 310.0]));
    let (j, n) = format.rounded_product(bounded, format.constant(LOG2_10));
    let [short, short_low] = LOG10_2_SHORT.map(|part| format.constant(part));
    let near = j.mul_add(-short, bounded);
    let rest = j.mul_add(-short_low, near);
    let lost = j.mul_add(-short_low, difference(near, rest));
    let ln_10 = format.constant(LN_10);
    let f = exact_product(rest, ln_10);
    let low = rest.mul_add(format.constant(LN_10_LOW), f.low);
    let low = lost.mul_add(ln_10, low);
    let tail = (format.polynomial(f.high, EXP_M1) * f.high).mul_add(f.high, low);
    let power = sum(sum(f.high, tail), format.float(1.0));
    x.ne(x).select(x, format.scaled(power, n))
}

/// A positive number as `m * 2^n`, `m` around 1.
pub(super) struct Split<'k> {
    /// `m - 1`; `m` is from 2/3 to 4/3 (`f32`), or from sqrt(1/2) to sqrt(2) (`f64`).
    pub(super) fraction: Val<'k>,
    /// `n`, as a float.
    pub(super) exponent: Val<'k>,
}

/// The least mantissa of [`split`].
const LEAST_MANTISSA: Constant = [2.0 / 3.0, std::f64::consts::FRAC_1_SQRT_2];

pub(super) fn split(x: Val<'_>) -> Split<'_> {
    let format = Format::of(x);
    // Numbers below the normal ones have no exponent of their own.
    let scale = (format.digits + 1) as f64;
    let least_normal = (1.0 - format.bias as f64).exp2();
    let tiny = x.lt(format.float(least_normal));
    let normal = tiny.select(x * format.float(scale.exp2()), x);
    let raised = tiny.select(format.float(-scale), format.float(0.0));

    let least = LEAST_MANTISSA[usize::from(format.is_double())];
    let least = if format.is_double() {
        least.to_bits() as i64
    } else {
        (least as f32).to_bits().into()
    };
    let bits = format.bits(normal);
    let n = (bits - format.integer(least)) >> format.integer(format.digits);
    let mantissa = format.with_bits(bits - (n << format.integer(format.digits)));
    Split {
        fraction: mantissa - format.float(1.0),
        exponent: n.cast(format.ty) + raised,
    }
}

/// (log(1 + f) - f + f^2 / 2) / f^3 for f from -1/3 to 1/3: 2^-27 of the logarithm.
pub(super) const LOG_SINGLE: Coefficients = [
    &[
        0.333332151,
        -0.249998122,
        0.200104415,
        -0.166798443,
        0.140054211,
        -0.121929586,
        0.13986212,
        -0.128547192,
    ],
    &[],
];

/// (log10(1 + f) - f log10(e)) / f^2 for f from -1/3 to 1/3: 2^-27 of the logarithm.
const LOG10_SINGLE: Coefficients = [
    &[
        -0.217147246,
        0.144764289,
        -0.108572409,
        0.0869053677,
        -0.0724499375,
        0.0608091205,
        -0.0528454594,
        0.0608094931,
        -0.0562212616,
    ],
    &[],
];

/// (log((1 + s) / (1 - s)) - 2 s) / s^3 as a polynomial in s^2, for s^2 up to 0.0295: 2^-59 of
/// the logarithm.
pub(super) const LOG_DOUBLE: Coefficients = [
    &[],
    &[
        0.6666666666666735,
        0.39999999999410446,
        0.2857142874325914,
        0.22222198487913172,
        0.18183568634291394,
        0.15313941979259987,
        0.14797029602468256,
    ],
];

/// `ln(x)`.
pub(super) fn ln(x: Val<'_>) -> Val<'_> {
    let format = Format::of(x);
    let Split { fraction, exponent } = split(x);
    let result = if format.is_double() {
        ln_double(fraction, Some(exponent))
    } else {
        exponent.mul_add(format.constant(LN_2), ln_single(fraction))
    };
    positive(x, result)
}

/// `ln(1 + f)` in `f32`.
fn ln_single(f: Val<'_>) -> Val<'_> {
    let format = Format::of(f);
    let r = format
        .polynomial(f, LOG_SINGLE)
        .mul_add(f, format.float(-0.5));
    r.mul_add(f * f, f)
}

/// `ln(1 + f) + exponent * ln(2)` in `f64`.
///
/// With s = f / (2 + f) the logarithm of 1 + f is f - f^2 / 2 + s (f^2 / 2 + R(s^2)), where the
/// rounding errors of the last term are small beside f (as in FreeBSD's `e_log.c`).
fn ln_double<'k>(f: Val<'k>, exponent: Option<Val<'k>>) -> Val<'k> {
    let format = Format::of(f);
    let s = f / (f + format.float(2.0));
    let z = s * s;
    let r = format.polynomial(z, LOG_DOUBLE) * z;
    let half = f * format.float(0.5);
    let low = exponent.map_or(format.float(0.0), |n| n * format.constant(LN_2_LOW));
    let tail = s.mul_add(half.mul_add(f, r), low);
    let rest = difference(half.mul_add(f, -tail), f);
    match exponent {
        Some(n) => n.mul_add(format.constant(LN_2), -rest),
        None => -rest,
    }
}

/// `log2(x)`.
pub(super) fn log2(x: Val<'_>) -> Val<'_> {
    let format = Format::of(x);
    let Split { fraction, exponent } = split(x);
    let ln = ln_of_fraction(fraction);
    let low = ln.mul_add(format.constant(LOG2_E_LOW), exponent);
    positive(x, ln.mul_add(format.constant(LOG2_E), low))
}

/// `log10(x)`: of `f64` the natural logarithm times log10(e), of `f32` the fraction and a polynomial for what lacks, so
/// that the product is rounded once.
pub(super) fn log10(x: Val<'_>) -> Val<'_> {
    let format = Format::of(x);
    let Split { fraction, exponent } = split(x);
    let low = exponent * format.constant(LOG10_2_LOW);
    let (first, low) = if format.is_double() {
        let ln = ln_double(fraction, None);
        (ln, ln.mul_add(format.constant(LOG10_E_LOW), low))
    } else {
        let low = fraction.mul_add(format.constant(LOG10_E_LOW), low);
        let square = fraction * fraction;
        let rest = format.polynomial(fraction, LOG10_SINGLE);
        (fraction, rest.mul_add(square, low))
    };
    let of_fraction = first.mul_add(format.constant(LOG10_E), low);
    positive(x, exponent.mul_add(format.constant(LOG10_2), of_fraction))
}

fn ln_of_fraction(f: Val<'_>) -> Val<'_> {
    if Format::of(f).is_double() {
        ln_double(f, None)
    } else {
        ln_single(f)
    }
}

/// A logarithm of a positive number, or what it is for the others: of infinity and NaN themselves, of zeros minus
/// infinity, of negative numbers NaN.
pub(super) fn positive<'k>(x: Val<'k>, result: Val<'k>) -> Val<'k> {
    let format = Format::of(x);
    let infinity = format.infinity();
    // As unsigned numbers the bits of all these but 0 are not below those of infinity.
    let result = format
        .unsigned_bits(x)
        .ge(format.unsigned_bits(infinity))
        .select(x.mul_add(infinity, infinity), result);
    x.eq(format.float(0.0)).select(-infinity, result)
}

/// (tanh(a) / a - 1) / a^2 as a polynomial in a^2, for a up to 0.55: 2^-29 and 2^-65 of tanh.
const TANH: Coefficients = [
    &[
        -0.333333164,
        0.133325353,
        -0.0538460352,
        0.0210428108,
        -0.00622985652,
    ],
    &[
        -0.3333333333333333,
        0.13333333333332864,
        -0.053968253967838165,
        0.021869488517592663,
        -0.008863235040876806,
        0.0035921197541992195,
        -0.001455739596467909,
        0.0005892735063716069,
        -0.00023491228896130192,
        8.038284903136613e-05,
        5.218490624572103e-06,
        -6.245157416557233e-05,
        7.509454559554907e-05,
        -3.591711215221205e-05,
    ],
];

/// Magnitudes from which on the hyperbolic tangent is 1.
const TANH_ONE: Constant = [9.1, 19.1];

/// `tanh(x)`: a polynomial near zero, 1 - 2 / (e^2a + 1) elsewhere.
pub(super) fn tanh(x: Val<'_>) -> Val<'_> {
    let format = Format::of(x);
    let a = x.abs();
    let z = a * a;
    let small = (format.polynomial(z, TANH) * z).mul_add(a, a);
    let (one, two) = (format.float(1.0), format.float(2.0));
    let twice = a.min(format.constant(TANH_ONE)) * two;
    let (f, n) = exp_reduced(twice, LOG2_E, [LN_2, LN_2_LOW]);
    let divisor = (format.polynomial(f, EXP)).mul_add(format.power_of_two(n), one);
    let large = format.reciprocal(divisor).mul_add(-two, one);
    let magnitude = a.ge(format.float(0.55)).select(large, small);
    let sign = format.bits(x) & format.integer(format.sign_bit());
    format.with_bits(format.bits(magnitude) | sign)
}
