//! Exponentials and logarithms near 1, hyperbolic functions and their inverses.
//!
//! What is rounded is put off to the end: sums whose parts cancel have a second part for what the first one lost.

use kiln_jit_core::build::Val;
use kiln_jit_core::ir::Type;

use super::Math as _;
use super::exponential::{LN_2, LN_2_LOW, LOG_DOUBLE, LOG_SINGLE, LOG2_E, Split, positive, split};
use super::format::{
    Coefficients, Constant, Format, Pair, difference, exact_product, exact_sum, exact_sum_of_any,
    sum,
};
use super::power::LN_2_SHORT;
use crate::number::Signed as _;

/// (e^f - 1 - f) / f^2 for |f| <= ln(2) / 2: 2^-31 and 2^-61 of e^f - 1.
pub(super) const EXP_M1: Coefficients = [
    &[
        0.5,
        0.166666672,
        0.0416664779,
        0.00833319221,
        0.0013933751,
        0.000199583985,
    ],
    &[
        0.5,
        0.16666666666666677,
        0.04166666666666668,
        0.00833333333332137,
        0.0013888888888877384,
        0.00019841269886883284,
        2.4801587340862813e-05,
        2.7557243361712026e-06,
        2.755725889399935e-07,
        2.5109358932416557e-08,
        2.0919626954469137e-09,
    ],
];

/// Arguments beyond which e^x overflows.
const OVERFLOW: Constant = [89.0, 710.0];
/// Arguments beyond which the hyperbolic sine overflows, and which the reduction can take.
const HYPERBOLIC_OVERFLOW: Constant = [89.5, 710.5];

/// Magnitudes below which a function is its argument: `2^-25` and `2^-54` where the next term is a square, `2^-13` and
/// `2^-28` where it is a cube.
const LINEAR: Constant = [2.9802322387695312e-8, 5.551115123125783e-17];
const LINEAR_OF_CUBE: Constant = [0.0001220703125, 3.725290298461914e-9];

/// A quarter of `e^x - 1`, for `x` from -40 to the overflow.
///
/// With `x = n ln 2 + f` it is `2^n - 1` and `2^n f`, whose sum is exact in two parts, and what is left of `e^f`.
fn quarter_of_exp_m1(x: Val<'_>) -> Pair<'_> {
    let format = Format::of(x);
    let (j, n) = format.rounded_product(x, format.constant(LOG2_E));
    let near = j.mul_add(-format.constant(LN_2), x);
    let f = j.mul_add(-format.constant(LN_2_LOW), near);
    let lost = j.mul_add(-format.constant(LN_2_LOW), difference(near, f));
    let rest = (format.polynomial(f, EXP_M1) * f).mul_add(f, lost);
    let power = format.power_of_two(n - format.integer(2));
    let whole = exact_sum(difference(power, format.float(0.25)), power * f);
    Pair {
        high: whole.high,
        low: power.mul_add(rest, whole.low),
    }
}

/// `e^x - 1`.
pub(super) fn exp_m1(x: Val<'_>) -> Val<'_> {
    let format = Format::of(x);
    // Below, it is -1.
    let Pair { high, low } = quarter_of_exp_m1(x.max(format.constant([-20.0, -40.0])));
    let result = sum(high, low) * format.float(4.0);
    let result = x.abs().lt(format.constant(LINEAR)).select(x, result);
    let overflows = x.ge(format.constant(OVERFLOW));
    let result = overflows.select(format.infinity(), result);
    x.ne(x).select(x, result)
}

/// `sinh(x)`: with `E = e^|x| - 1` half of `E + E / (1 + E)`.
pub(super) fn sinh(x: Val<'_>) -> Val<'_> {
    let format = Format::of(x);
    let a = x.abs();
    let quarter = quarter_of_exp_m1(a);
    let Pair { high: e, low } = exact_sum(quarter.high, quarter.low);
    let q = e / sum(e, format.float(0.25)) * format.float(0.25);
    let both = exact_sum(e, q);
    // The quotient changes with E as 1 / (1 + E)^2.
    let slope = q.mul_add(format.float(-4.0), format.float(1.0));
    let low = (slope * slope).mul_add(low, sum(low, both.low));
    let result = sum(both.high, low) * format.float(2.0);
    let result = a.lt(format.constant(LINEAR_OF_CUBE)).select(a, result);
    with_sign_beyond(x, result)
}

/// `cosh(x)`: half of `e^|x|` and its reciprocal.
pub(super) fn cosh(x: Val<'_>) -> Val<'_> {
    let format = Format::of(x);
    let a = x.abs();
    let quarter = quarter_of_exp_m1(a);
    let quarter = exact_sum(quarter.high, quarter.low);
    let power = exact_sum_of_any(format.float(0.25), quarter.high);
    let low = sum(power.low, quarter.low);
    let result = sum(power.high, sum(format.float(0.0625) / power.high, low)) * format.float(2.0);
    let overflows = a.gt(format.constant(HYPERBOLIC_OVERFLOW));
    let result = overflows.select(format.infinity(), result);
    x.ne(x).select(x, result)
}

/// The magnitude of a hyperbolic sine, or infinity, with the sign of its argument; NaN stays.
fn with_sign_beyond<'k>(x: Val<'k>, magnitude: Val<'k>) -> Val<'k> {
    let format = Format::of(x);
    let overflows = x.abs().gt(format.constant(HYPERBOLIC_OVERFLOW));
    let magnitude = overflows.select(format.infinity(), magnitude);
    x.ne(x).select(x, magnitude.copysign(x))
}

/// `ln(1 + f) + exponent * ln(2) + low`, with the polynomials of `ln`.
fn ln_of_parts<'k>(f: Val<'k>, exponent: Val<'k>, low: Val<'k>) -> Val<'k> {
    let format = Format::of(f);
    if format.is_double() {
        let s = f / sum(f, format.float(2.0));
        let z = s * s;
        let r = format.polynomial(z, LOG_DOUBLE) * z;
        let half = f * format.float(0.5);
        let low = exponent.mul_add(format.constant(LN_2_LOW), low);
        let tail = s.mul_add(half.mul_add(f, r), low);
        let rest = difference(half.mul_add(f, -tail), f);
        return exponent.mul_add(format.constant(LN_2), -rest);
    }
    let r = format.polynomial(f, LOG_SINGLE);
    let tail = r.mul_add(f, format.float(-0.5)).mul_add(f * f, low);
    let [short, short_low] = LN_2_SHORT.map(|part| format.constant(part));
    let whole = exact_sum(exponent * short, f);
    sum(
        whole.high,
        sum(whole.low, exponent.mul_add(short_low, tail)),
    )
}

/// `ln(1 + w)`, and where `doubled` holds, of a large number, `ln(2 w)`.
fn ln_1p_of<'k>(w: Pair<'k>, doubled: Val<'k>) -> Val<'k> {
    let format = Format::of(w.high);
    let (zero, one) = (format.float(0.0), format.float(1.0));
    let whole = exact_sum_of_any(one, w.high);
    let u = doubled.select(w.high, whole.high);
    let Split { fraction, exponent } = split(u);
    // A number near 1 is best as what it is more than 1.
    let is_near = exponent.eq(zero) & !doubled;
    let fraction = is_near.select(w.high, fraction);
    let low = is_near.select(w.low, sum(whole.low, w.low)) / u;
    let low = doubled.select(zero, low);
    ln_of_parts(fraction, sum(exponent, doubled.select(one, zero)), low)
}

/// `ln(1 + x)`.
pub(super) fn ln_1p(x: Val<'_>) -> Val<'_> {
    let format = Format::of(x);
    let w = Pair {
        high: x,
        low: format.float(0.0),
    };
    let result = ln_1p_of(w, format.builder().lit(Type::BOOL, false));
    let result = positive(sum(x, format.float(1.0)), result);
    x.abs().lt(format.constant(LINEAR)).select(x, result)
}

/// The square root of a number in two parts that is not 0.
pub(super) fn precise_sqrt(x: Pair<'_>) -> Pair<'_> {
    let format = Format::of(x.high);
    let root = x.high.sqrt();
    let rest = sum(root.mul_add(-root, x.high), x.low);
    Pair {
        high: root,
        low: rest / (root * format.float(2.0)),
    }
}

/// From here on the square of a number is all of its sum with 1.
const ALL_SQUARE: Constant = [8192.0, 268_435_456.0];

/// `asinh(x)`: `ln(1 + w)` with `w = a + (sqrt(1 + a^2) - 1)`.
pub(super) fn asinh(x: Val<'_>) -> Val<'_> {
    let format = Format::of(x);
    let (a, one) = (x.abs(), format.float(1.0));
    let is_large = a.gt(format.constant(ALL_SQUARE));
    let base = is_large.select(one, a);
    let square = exact_product(base, base);
    let more = exact_sum_of_any(one, square.high);
    let root = precise_sqrt(Pair {
        high: more.high,
        low: sum(more.low, square.low),
    });
    let w = exact_sum_of_any(base, difference(root.high, one));
    let w = Pair {
        high: is_large.select(a, w.high),
        low: sum(w.low, root.low),
    };
    let result = ln_1p_of(w, is_large);
    let result = a.lt(format.constant(LINEAR_OF_CUBE)).select(a, result);
    // Infinities and NaN are themselves.
    a.lt(format.infinity()).select(result.copysign(x), x)
}

/// `acosh(x)`: `ln(1 + w)` with `w = (x - 1) + sqrt(x^2 - 1)`.
pub(super) fn acosh(x: Val<'_>) -> Val<'_> {
    let format = Format::of(x);
    let (zero, one) = (format.float(0.0), format.float(1.0));
    let is_large = x.gt(format.constant(ALL_SQUARE));
    let base = is_large.select(one, x);
    let square = exact_product(base, base);
    let less = exact_sum(square.high, -one);
    let root = precise_sqrt(Pair {
        high: less.high,
        low: sum(less.low, square.low),
    });
    let root_low = less.high.gt(zero).select(root.low, zero);
    let beyond = exact_sum(base, -one);
    let w = exact_sum_of_any(beyond.high, root.high);
    let w = Pair {
        high: is_large.select(x, w.high),
        low: sum(w.low, sum(root_low, beyond.low)),
    };
    let result = ln_1p_of(w, is_large);
    let result = x.lt(format.infinity()).select(result, x);
    x.lt(one).select(format.nan(), result)
}

/// `atanh(x)`: half of `ln(1 + 2 a / (1 - a))`.
pub(super) fn atanh(x: Val<'_>) -> Val<'_> {
    let format = Format::of(x);
    let (a, one) = (x.abs(), format.float(1.0));
    let under = exact_sum(one, -a);
    let over = a * format.float(2.0);
    let high = over / under.high;
    let rest = high.mul_add(-under.low, high.mul_add(-under.high, over));
    let w = Pair {
        high,
        low: rest / under.high,
    };
    let result = ln_1p_of(w, format.builder().lit(Type::BOOL, false)) * format.float(0.5);
    let result = a.lt(format.constant(LINEAR_OF_CUBE)).select(a, result);
    let at_most = a.eq(one).select(format.infinity(), format.nan());
    a.lt(one).select(result, at_most).copysign(x)
}
