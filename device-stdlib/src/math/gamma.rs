//! The gamma function and the logarithm of its magnitude.
//!
//! Below [`STIRLING_FROM`] both go back to numbers around 2, in `f64` by the factors that lie between; from there on they
//! are Stirling's formula, whose exponent the gamma function has in two parts. Negative numbers are reflected.

use std::f64::consts;

use kiln_jit_core::build::Val;
use kiln_jit_core::ir::Type;

use super::Math as _;
use super::exponential::{Power, ln};
use super::format::{Coefficients, Constant, Format, exact_product, exact_sum, sum};
use super::power::precise_ln;
use super::rows::pair;
use super::trigonometric::{FRAC_1_PI, sin_pi};
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

/// ln(gamma(2 + u)) / (u (1 + u)), without its two zeros, for u from -1 to 1: 2^-27, near 0 2^-26, and 2^-56.
const LN_GAMMA: Coefficients = [
    &[
        0.422784328,
        -0.100317284,
        0.0329650715,
        -0.012384858,
        0.00499875564,
        -0.00210249075,
        0.00091246661,
        -0.00042484625,
        0.00019309207,
        -5.29960707e-05,
        2.21046284e-05,
        -3.85592502e-05,
        1.8808043e-05,
    ],
    &[
        0.42278433509846713,
        -0.10031730167435392,
        0.03296500062115691,
        -0.012384192193371805,
        0.004998641164627129,
        -0.0021081308339216706,
        0.0009153769240386907,
        -0.0004057073983775151,
        0.0001825526153982638,
        -8.309511477709561e-05,
        3.816907658276081e-05,
        -1.7661767658452517e-05,
        8.221234475942905e-06,
        -3.846858091533014e-06,
        1.8113906873056685e-06,
        -8.54560908975883e-07,
        3.958940459367468e-07,
        -1.878442644643758e-07,
        1.042041826608264e-07,
        -4.9827532071170234e-08,
        5.910565853507869e-09,
        -2.7296358592514825e-09,
        1.6194359237484174e-08,
        -7.842557720538356e-09,
        -4.312495770350818e-09,
        2.0986002157033107e-09,
        1.5746606982777302e-09,
        -7.639292345836201e-10,
    ],
];

/// What Stirling's formula lacks, times x, as a polynomial in 1 / x^2, for x from 3 and from 8 on: 2^-28 and 2^-60.
const STIRLING: Coefficients = [
    &[0.0833332688, -0.00277280831, 0.000697231328],
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

/// pi in two parts.
const PI: [Constant; 2] = [
    [std::f32::consts::PI as f64, consts::PI],
    [-8.74227766e-08, 1.2246467991473532e-16],
];
/// The root of 2 pi, and that of pi / 2.
const ROOT_2_PI: Constant = [2.50662827, 2.5066282746310002];
const ROOT_HALF_PI: Constant = [1.25331414, 1.2533141373155003];
/// Half of ln(2 pi), less 1/2.
const STIRLING_CONSTANT: Constant = [0.418938547, 0.4189385332046728];

/// From here on numbers have Stirling's formula.
const STIRLING_FROM: Constant = [3.0, 8.0];
/// Magnitudes below which the gamma function is the reciprocal of its argument.
const RECIPROCAL: Constant = [2.9802322387695312e-8, 5.551115123125783e-17];
/// Magnitudes beyond which it is infinite or, of negative numbers, 0.
const LARGEST: Constant = [48.0, 256.0];

/// `gamma(x)`, C's `tgamma` (C23, 7.12.8.4).
pub(super) fn gamma(x: Val<'_>) -> Val<'_> {
    let format = Format::of(x);
    let k = format.builder();
    let (a, zero) = (x.abs(), format.float(0.0));
    let negative = x.lt(zero);
    let sine = k.var("sine", zero);
    k.if_(negative, || sine.set(sin_pi(a)));
    let sine = sine.get();
    let result = k.var("gamma", zero);
    k.if_(a.lt(format.constant(STIRLING_FROM)), || {
        result.set(gamma_near(a, negative, sine));
    })
    .else_(|| {
        let power = stirling_power(a.min(format.constant(LARGEST)), negative);
        let reflected = -format.constant(ROOT_HALF_PI) / (a * sine);
        let factor = negative.select(reflected, format.constant(ROOT_2_PI));
        // One of a negative number is large next to an integer, where the power alone would be subnormal.
        result.set(power.times(factor));
    });
    let tiny = a.lt(format.constant(RECIPROCAL));
    let result = tiny.select(format.float(1.0) / x, result.get());
    let pole = negative & x.trunc().eq(x);
    let result = pole.select(format.nan(), result);
    let result = x.eq(format.infinity()).select(x, result);
    x.ne(x).select(x, result)
}

/// The gamma function of `a`, which is below [`STIRLING_FROM`], or of `-a`, by `sine`, that of pi a: one quotient.
fn gamma_near<'k>(a: Val<'k>, negative: Val<'k>, sine: Val<'k>) -> Val<'k> {
    let format = Format::of(a);
    let one = format.float(1.0);
    let Near { of, t, over } = Near::of(a);
    let value = format.polynomial(t, GAMMA).mul_add(t, one) * over;
    // Below 2 it is that of one more: gamma(1 + a) = a gamma(a).
    let below_one = of.eq(format.float(0.0));
    let less = of.lt(format.float(2.0)).select(sum(t, one), one);
    let positive = (value, below_one.select(less * a, less));
    let times_a = below_one.select(one, a);
    let reflected = (-format.constant(PI[0]) * less, sine * value * times_a);
    let numerator = negative.select(reflected.0, positive.0);
    numerator / negative.select(reflected.1, positive.1)
}

/// e to the logarithm of gamma(a), without that of the root of 2 pi; its reciprocal if `inverse`.
fn stirling_power<'k>(a: Val<'k>, inverse: Val<'k>) -> Power<'k> {
    let format = Format::of(a);
    let ln = precise_ln(a);
    let factor = sum(a, format.float(-0.5));
    let product = exact_product(ln.high, factor);
    let low = ln.low.mul_add(factor, product.low);
    // Around 3.2, where both are the same, what the sums lose is nothing beside 1.
    let less = exact_sum(product.high, -a);
    let low = sum(sum(low, less.low), rest_of_stirling(a));
    let exponent = exact_sum(less.high, low);
    let signed = |part: Val<'k>| inverse.select(-part, part);
    Power::of_sum(signed(exponent.high), Some(signed(exponent.low)))
}

/// What Stirling's formula lacks.
fn rest_of_stirling(a: Val<'_>) -> Val<'_> {
    let format = Format::of(a);
    let inverse = format.float(1.0) / a;
    format.polynomial(inverse * inverse, STIRLING) * inverse
}

/// A number below [`STIRLING_FROM`], and how it is made of one from 2 to 3.
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
        let first = STIRLING_FROM[usize::from(format.is_double())] as u32;
        let factors = (2..first - 1).map(|i| {
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
    let result = k.var("ln_gamma", zero);
    k.if_(a.lt(format.constant(STIRLING_FROM)), || {
        result.set(ln_gamma_near(a));
    })
    .else_(|| {
        let log = sum(ln(a), -one);
        let low = sum(rest_of_stirling(a), format.constant(STIRLING_CONSTANT));
        result.set(sum(a, format.float(-0.5)).mul_add(log, low));
    });
    let negative = x.lt(zero);
    // Of tiny numbers it is the same for both signs.
    k.if_(negative & a.ge(format.constant(RECIPROCAL)), || {
        result.set(reflected_ln_gamma(a, result.get()));
    });
    let pole = x.trunc().eq(x);
    let result = (negative & pole).select(format.infinity(), result.get());
    let result = x.ne(x).select(x, result);

    let half = a.floor() * format.float(0.5);
    let even = half.trunc().eq(half);
    // That of -0 is minus infinity.
    let minus_zero = x.eq(zero) & one.copysign(x).lt(zero);
    let is_minus = (negative & even & !pole) | minus_zero;
    let sign = |n: i32| k.lit(Type::I32, n);
    pair(result, is_minus.select(sign(-1), sign(1)))
}

/// The logarithm of gamma(-a) by `positive`, that of gamma(a): gamma(a) gamma(-a) is -pi / (a sin(pi a)).
fn reflected_ln_gamma<'k>(a: Val<'k>, positive: Val<'k>) -> Val<'k> {
    let format = Format::of(a);
    let [pi, pi_low] = PI.map(|part| format.constant(part));
    let divisor = exact_product(sin_pi(a).abs(), a);
    let quotient = pi / divisor.high;
    // What the quotient lacks is more than the last digits of a logarithm near 0.
    let rest = sum((-quotient).mul_add(divisor.high, pi), pi_low);
    let rest = (-quotient).mul_add(divisor.low, rest);
    let less = rest.mul_add(-format.constant(FRAC_1_PI), positive);
    sum(ln(quotient), -less)
}

/// The logarithm of gamma(a), `a` from 0 to [`STIRLING_FROM`].
fn ln_gamma_near(a: Val<'_>) -> Val<'_> {
    let format = Format::of(a);
    let one = format.float(1.0);
    // The number less 2, of one below 1 what it lacks of 1, as gamma(1 + a) = a gamma(a); and one more than that.
    let below_one = a.lt(one);
    let [less_one, less_two] = [-1.0, -2.0].map(|by| sum(a, format.float(by)));
    let u = below_one.select(less_one, less_two);
    let next = below_one.select(a, less_one);
    if !format.is_double() {
        let value = format.polynomial(u, LN_GAMMA) * (next * u);
        // Of 1 the value is -0.
        return sum(value, below_one.select(-ln(a), format.float(0.0)));
    }
    let Near { t, over, .. } = Near::of(a);
    let above = a.ge(format.float(3.0));
    let (u, next) = (above.select(t, u), above.select(sum(t, one), next));
    let value = format.polynomial(u, LN_GAMMA) * (next * u);
    let log = ln(below_one.select(a, over));
    sum(value, below_one.select(-log, log))
}

/// What the functions are on the host, by the polynomials of `f64`.
pub(super) mod on_host {
    use super::super::host::sin_pi;
    use super::*;

    const FAR: f64 = STIRLING_FROM[1];

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
            ..0.0 if a >= FAR => -ROOT_HALF_PI[1] / (a * sin_pi(a)) / half_power(a) / half_power(a),
            ..0.0 => -PI[0][1] / (a * sin_pi(a) * gamma(a)),
            FAR.. => ROOT_2_PI[1] * half_power(a) * half_power(a),
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
            ..0.0 if a >= RECIPROCAL[1] => (PI[0][1] / (sin_pi(a).abs() * a)).ln() - of_positive(a),
            _ => of_positive(a),
        };
        let negative = x < 0.0 && !pole && a.floor() % 2.0 == 0.0;
        let minus = negative || x == 0.0 && x.is_sign_negative();
        (value, if minus { -1 } else { 1 })
    }

    fn of_positive(a: f64) -> f64 {
        let of_two_and = |u: f64, next: f64| polynomial(u, LN_GAMMA) * (next * u);
        match a {
            ..1.0 => of_two_and(a - 1.0, a) - a.ln(),
            ..3.0 => of_two_and(a - 2.0, a - 1.0) + 0.0,
            ..FAR => of_two_and(a.fract(), a.fract() + 1.0) + between(a.floor(), a.fract()).ln(),
            _ => {
                let rest = polynomial(1.0 / (a * a), STIRLING) / a;
                (a - 0.5).mul_add(a.ln() - 1.0, rest + STIRLING_CONSTANT[1])
            }
        }
    }
}
