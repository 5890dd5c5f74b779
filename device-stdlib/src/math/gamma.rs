//! The gamma function and the logarithm of its magnitude.
//!
//! Below [`STIRLING_FROM`] both go back to numbers around 2, by the factors that lie between; from there on they are
//! Stirling's formula, whose exponent the gamma function has in two parts. Negative numbers are reflected.

use std::f64::consts;

use kiln_jit_core::build::Val;
use kiln_jit_core::ir::Type;

use super::Math as _;
use super::exponential::{exp_of_sum, ln};
use super::format::{Coefficients, Constant, Format, exact_product, exact_sum, sum};
use super::hyperbolic::ln_1p;
use super::power::precise_ln;
use super::rows::pair;
use super::trigonometric::sin_pi;
use crate::number::Signed as _;

/// (gamma(2 + t) - 1) / t for t from 0 to 1: 2^-28 and 2^-57.
const GAMMA: Coefficients = [
    &[
        0.422784328,
        0.411839992,
        0.0815841928,
        0.0741854236,
        2.01047224e-05,
        0.01039859,
        -0.00161920895,
        0.000806560973,
    ],
    &[
        0.42278433509846713,
        0.41184033042643625,
        0.08157691924741728,
        0.07424901074083495,
        -0.0002669818121357825,
        0.01115404255320281,
        -0.0028526199455174497,
        0.0021037853207784276,
        -0.0009189594931006764,
        0.0004884920256989471,
        -0.00023651350755732518,
        0.00011376554996233746,
        -4.990618711532093e-05,
        1.8823636401807814e-05,
        -5.491322317835287e-06,
        1.0695092570556186e-06,
        -1.0184071264177212e-07,
    ],
];

/// ln(gamma(2 + t)) / t for t from -1/2 to 1: 2^-28 and 2^-60.
const LN_GAMMA: Coefficients = [
    &[
        0.422784328,
        0.322467029,
        -0.067352511,
        0.0205807555,
        -0.0073820753,
        0.00288787996,
        -0.00121009583,
        0.000535863161,
        -0.000207585254,
        4.35766233e-05,
    ],
    &[
        0.42278433509846713,
        0.3224670334241132,
        -0.06735230105319796,
        0.020580808427787502,
        -0.007385551028687111,
        0.0028905103306125996,
        -0.0011927539111748094,
        0.0005096695270786523,
        -0.00022315476914202685,
        9.945749459386184e-05,
        -4.4926118904862264e-05,
        2.050723289467849e-05,
        -9.440199753274835e-06,
        4.375472004777847e-06,
        -2.0371195482358996e-06,
        9.511969731319312e-07,
        -4.5041997201473635e-07,
        2.2102374422908605e-07,
        -1.0784595012220329e-07,
        4.4561979632842775e-08,
        -1.2394516911278076e-08,
        1.6305432352127331e-09,
    ],
];

/// What Stirling's formula lacks, times x, as a polynomial in 1 / x^2, for x from 8 on: 2^-33 and 2^-60.
const STIRLING: Coefficients = [
    &[0.0833333358, -0.00277769845, 0.000780034694],
    &[
        0.08333333333333333,
        -0.002777777777773988,
        0.0007936507897524059,
        -0.0005952365845057049,
        0.0008414700852503147,
        -0.001890382993887715,
        0.005065905360156132,
    ],
];

const PI: Constant = [std::f32::consts::PI as f64, consts::PI];
/// The root of 2 pi, and that of pi / 2.
const ROOT_2_PI: Constant = [2.50662827, 2.5066282746310002];
const ROOT_HALF_PI: Constant = [1.25331414, 1.2533141373155003];
/// Half of ln(2 pi), less 1/2.
const STIRLING_CONSTANT: Constant = [0.418938547, 0.4189385332046728];

/// From here on numbers have Stirling's formula.
const STIRLING_FROM: f64 = 8.0;
/// Magnitudes below which the gamma function is the reciprocal of its argument.
const RECIPROCAL: Constant = [2.9802322387695312e-8, 5.551115123125783e-17];
/// Magnitudes beyond which it is infinite or, of negative numbers, 0.
const LARGEST: Constant = [64.0, 256.0];

/// `gamma(x)`, C's `tgamma` (C23, 7.12.8.4).
pub(super) fn gamma(x: Val<'_>) -> Val<'_> {
    let format = Format::of(x);
    let k = format.builder();
    let (a, zero) = (x.abs(), format.float(0.0));
    let negative = x.lt(zero);
    let sine = sin_pi(a);
    let result = k.var("gamma", zero);
    k.if_(a.lt(format.float(STIRLING_FROM)), || {
        let Near { of, t, over } = Near::of(a);
        let value = format.polynomial(t, GAMMA).mul_add(t, format.float(1.0)) * over;
        // Below 1 it is that of one more, gamma(1 + a) = a gamma(a).
        let below_one = of.eq(zero);
        let one = format.float(1.0);
        let value = value / of.lt(format.float(2.0)).select(sum(t, one), one);
        let times_a = below_one.select(value, value * a);
        let positive = below_one.select(value / a, value);
        let reflected = -format.constant(PI) / (sine * times_a);
        result.set(negative.select(reflected, positive));
    })
    .else_(|| {
        let exponent = stirling_exponent(a.min(format.constant(LARGEST)), negative);
        let root = format.constant(ROOT_2_PI);
        let reflected = -format.constant(ROOT_HALF_PI) / (a * sine);
        result.set(negative.select(reflected, root) * exponent);
    });
    let tiny = a.lt(format.constant(RECIPROCAL));
    let result = tiny.select(format.float(1.0) / x, result.get());
    let pole = negative & x.trunc().eq(x);
    let result = pole.select(format.nan(), result);
    let result = x.eq(format.infinity()).select(x, result);
    x.ne(x).select(x, result)
}

/// e to the logarithm of gamma(a), without that of the root of 2 pi; its reciprocal if `inverse`.
fn stirling_exponent<'k>(a: Val<'k>, inverse: Val<'k>) -> Val<'k> {
    let format = Format::of(a);
    let ln = precise_ln(a);
    let factor = sum(a, format.float(-0.5));
    let product = exact_product(ln.high, factor);
    let low = ln.low.mul_add(factor, product.low);
    let less = exact_sum(product.high, -a);
    let low = sum(sum(low, less.low), rest_of_stirling(a));
    let exponent = exact_sum(less.high, low);
    let signed = |part: Val<'k>| inverse.select(-part, part);
    exp_of_sum(signed(exponent.high), Some(signed(exponent.low)))
}

/// What Stirling's formula lacks.
fn rest_of_stirling(a: Val<'_>) -> Val<'_> {
    let format = Format::of(a);
    let inverse = format.float(1.0) / a;
    format.polynomial(inverse * inverse, STIRLING) * inverse
}

/// A number from 0 to 8, and how it is made of one from 2 to 3.
struct Near<'k> {
    /// The largest integer that is not greater.
    of: Val<'k>,
    /// What the number is more than that.
    t: Val<'k>,
    /// The product of the factors between `2 + t` and the number, if that is greater.
    over: Val<'k>,
}

impl<'k> Near<'k> {
    fn of(a: Val<'k>) -> Near<'k> {
        let format = Format::of(a);
        let of = a.floor();
        let t = sum(a, -of);
        let one = format.float(1.0);
        let factors = (2..STIRLING_FROM as u32 - 1).map(|i| {
            let i = format.float(i.into());
            i.lt(of).select(sum(t, i), one)
        });
        let over = factors.fold(one, |product, factor| product * factor);
        Near { of, t, over }
    }
}

/// The logarithm of the magnitude of `gamma(x)`, and the sign of that, C's `lgamma_r`.
pub(super) fn ln_gamma(x: Val<'_>) -> Val<'_> {
    let format = Format::of(x);
    let k = format.builder();
    let (a, zero, one) = (x.abs(), format.float(0.0), format.float(1.0));
    let positive = k.var("ln_gamma", zero);
    k.if_(a.lt(format.float(STIRLING_FROM)), || {
        positive.set(ln_gamma_near(a))
    })
    .else_(|| {
        let log = sum(ln(a), -one);
        let low = sum(rest_of_stirling(a), format.constant(STIRLING_CONSTANT));
        positive.set(sum(a, format.float(-0.5)).mul_add(log, low));
    });
    let positive = positive.get();
    // gamma(x) gamma(-x) = -pi / (x sin(pi x))
    let sine = sin_pi(a).abs();
    let reflected = sum(ln(format.constant(PI) / (sine * a)), -positive);
    let reflected = a
        .lt(format.constant(RECIPROCAL))
        .select(positive, reflected);
    let pole = x.trunc().eq(x);
    let reflected = pole.select(format.infinity(), reflected);
    let negative = x.lt(zero);
    let result = negative.select(reflected, positive);
    let result = x.ne(x).select(x, result);

    let half = a.floor() * format.float(0.5);
    let even = half.trunc().eq(half);
    // That of -0 is minus infinity.
    let minus_zero = x.eq(zero) & one.copysign(x).lt(zero);
    let is_minus = (negative & even & !pole) | minus_zero;
    let sign = |n: i32| k.lit(Type::I32, n);
    pair(result, is_minus.select(sign(-1), sign(1)))
}

/// The logarithm of gamma(a), `a` from 0 to 8.
fn ln_gamma_near(a: Val<'_>) -> Val<'_> {
    let format = Format::of(a);
    let (one, zero) = (format.float(1.0), format.float(0.0));
    let Near { t, over, .. } = Near::of(a);
    // What the number is more than 2, after so many factors were taken away or added.
    let [half, upper, three] = [0.5, 1.5, 3.0].map(|bound| format.float(bound));
    let around_two = a.lt(three).select(sum(a, format.float(-2.0)), t);
    let around_one = sum(a, -one);
    let s = a.lt(upper).select(around_one, around_two);
    let s = a.lt(half).select(a, s);
    let value = format.polynomial(s, LN_GAMMA) * s;
    let factor = a.lt(three).select(one, over);
    let factor = a.lt(half).select(one / a, factor);
    let log = ln(a.lt(half).select(a, factor));
    let log = a.lt(half).select(-log, log);
    let less = a.lt(upper).select(ln_1p(s), zero);
    sum(sum(value, -less), log)
}

/// What the functions are on the host, by the polynomials of `f64`.
pub(super) mod on_host {
    use super::super::host::sin_pi;
    use super::*;

    fn polynomial(x: f64, coefficients: Coefficients) -> f64 {
        let terms = coefficients[1].iter().rev();
        terms.fold(0.0, |sum, &c| sum.mul_add(x, c))
    }

    /// The product of the factors between a number and that from 2 to 3, which is `2 + t`.
    fn between(of: f64, t: f64) -> f64 {
        (2..of as u32).fold(1.0, |product, i| product * (t + f64::from(i)))
    }

    pub(in crate::math) fn gamma(x: f64) -> f64 {
        let a = x.abs();
        match x {
            _ if a < RECIPROCAL[1] => 1.0 / x,
            _ if x.is_nan() || x == f64::INFINITY => x,
            ..0.0 if x.trunc() == x => f64::NAN,
            ..0.0 if a >= STIRLING_FROM => {
                -ROOT_HALF_PI[1] / (a * sin_pi(a)) / half_power(a) / half_power(a)
            }
            ..0.0 => -consts::PI / (a * sin_pi(a) * gamma(a)),
            STIRLING_FROM.. => ROOT_2_PI[1] * half_power(a) * half_power(a),
            _ => {
                let (of, t) = (a.floor(), a.fract());
                let value = polynomial(t, GAMMA).mul_add(t, 1.0) * between(of, t);
                match of as u32 {
                    0 => value / (t + 1.0) / a,
                    1 => value / (t + 1.0),
                    _ => value,
                }
            }
        }
    }

    /// The root of e to the logarithm of gamma(a), without that of the root of 2 pi.
    fn half_power(a: f64) -> f64 {
        let a = a.min(LARGEST[1]);
        let rest = polynomial(1.0 / (a * a), STIRLING) / a;
        a.powf((a - 0.5) / 2.0) * (a / -2.0).exp() * (rest / 2.0).exp()
    }

    pub(in crate::math) fn ln_gamma(x: f64) -> (f64, i32) {
        let a = x.abs();
        let pole = x.trunc() == x;
        let value = match x {
            _ if x.is_nan() => x,
            ..0.0 if pole => f64::INFINITY,
            ..0.0 if a >= RECIPROCAL[1] => {
                (consts::PI / (sin_pi(a).abs() * a)).ln() - of_positive(a)
            }
            _ => of_positive(a),
        };
        let negative = x < 0.0 && !pole && a.floor() % 2.0 == 0.0;
        let minus = negative || x == 0.0 && x.is_sign_negative();
        (value, if minus { -1 } else { 1 })
    }

    fn of_positive(a: f64) -> f64 {
        let near_two = |s: f64| polynomial(s, LN_GAMMA) * s;
        match a {
            ..0.5 => near_two(a) - a.ln_1p() - a.ln(),
            ..1.5 => near_two(a - 1.0) - (a - 1.0).ln_1p(),
            ..3.0 => near_two(a - 2.0),
            ..STIRLING_FROM => near_two(a.fract()) + between(a.floor(), a.fract()).ln(),
            _ => {
                let rest = polynomial(1.0 / (a * a), STIRLING) / a;
                (a - 0.5).mul_add(a.ln() - 1.0, rest + STIRLING_CONSTANT[1])
            }
        }
    }
}
