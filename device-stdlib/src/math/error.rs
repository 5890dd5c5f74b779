//! The error function, its complement and its inverse, and the normal distribution.

use kiln_jit_core::build::Val;

use super::Math as _;
use super::exponential::{exp, exp_of_sum, ln};
use super::format::{Coefficients, Constant, Format, difference, exact_product, sum};
use crate::number::Signed as _;

/// erf(a) / a - 1 as a polynomial in a^2, for a up to 1: 2^-29 and 2^-55 of erf.
const ERF: Coefficients = [
    &[
        0.128379166,
        -0.376126289,
        0.112836182,
        -0.0268551242,
        0.0051907259,
        -0.000803065428,
        7.91990169e-05,
    ],
    &[
        0.12837916709551256,
        -0.3761263890318347,
        0.11283791670943219,
        -0.026866170643026575,
        0.005223977605729029,
        -0.000854832591965114,
        0.0001205529346521502,
        -1.4924712509522804e-05,
        1.6447154868122808e-06,
        -1.6206608356867929e-07,
        1.3712628814674872e-08,
        -7.783072047256754e-10,
    ],
];

/// (1 + 2 a) e^(a^2) erfc(a) as a polynomial in (a - c) / (a + c), for a from 1/2 to where erfc is 0: 2^-26 and 2^-54 of it.
const SCALED_ERFC: Coefficients = [
    &[
        1.27697837,
        -0.0927637517,
        -0.166030452,
        0.16404824,
        -0.0542146936,
        -0.00800039712,
        0.00867124368,
        0.00112635724,
        -0.00128003932,
        -0.000200246097,
    ],
    &[
        1.2329951186255526,
        -0.13962111684056253,
        0.015379652102613016,
        0.06809705425469334,
        -0.1010390660360092,
        0.0937328349983496,
        -0.06633036581821648,
        0.03716751553705614,
        -0.016197733989861098,
        0.005031969986672677,
        -0.0007577737598664118,
        -0.00019925677751071096,
        0.00015062378175887057,
        -2.4398752886017042e-05,
        -1.1228222384307077e-05,
        5.708119463417994e-06,
        3.057331220163105e-07,
        -8.218344419752237e-07,
        6.016405271138536e-08,
        1.0511905270439716e-07,
        -7.881284813774452e-09,
        -1.0290847007681947e-08,
        -1.1943061512171797e-09,
    ],
];
/// The number c of that quotient.
const CENTER: Constant = [2.0, 4.0];
/// Where the complement is 0 for the format.
const VANISHES: Constant = [11.0, 28.0];

/// The inverse of the error function by its argument x, as a polynomial in w - 5/2, where w = -ln(1 - x^2) is up to 5:
/// 2^-30 and 2^-20 of it.
const ERF_INV: Coefficients = [
    &[
        1.50140929,
        0.24664028,
        -0.00417732494,
        -0.00125270791,
        0.000218264118,
        -4.99599992e-06,
        -3.42626618e-06,
        4.78689685e-07,
        1.65036447e-08,
        -1.08617613e-08,
        4.34062675e-10,
        1.23465765e-10,
    ],
    &[
        1.5014090909660742,
        0.24664038783754394,
        -0.004175992616376222,
        -0.0012532781863537248,
        0.00021721999192199742,
        -4.533462917885738e-06,
        -3.173345401025414e-06,
        3.561808433218279e-07,
    ],
];

/// The inverse of the error function by its argument, for larger w, as a polynomial in the square root of w less a
/// center: 2^-27 and 2^-25 of it.
const ERF_INV_TAIL: Coefficients = [
    &[
        2.83297682,
        1.00167525,
        0.00944532268,
        -0.00764374575,
        0.00568768755,
        -0.00356167858,
        0.00147374556,
        -0.000131319946,
        -0.00027226712,
        0.000168541577,
        -3.45757908e-05,
    ],
    &[
        3.839783794723352,
        1.0094931955015187,
        0.0012598344094120724,
        -0.0008683524925621012,
        0.00032128847056106676,
        -0.00012003905938736446,
        5.491800006701659e-05,
        -2.9214461835200984e-05,
        1.905923870356456e-05,
        -1.146920401939309e-05,
        3.270024391993912e-06,
        5.836795978516711e-07,
        -5.79713451208306e-07,
        9.759081078462646e-08,
    ],
];
/// The center.
const TAIL_CENTER: Constant = [3.0, 4.0];

/// The series of x root(pi) erfcx(x) in 1 / (2 x^2), for large x: (2 n - 1)!! with alternating signs.
const ASYMPTOTIC: Coefficients = [
    &[1.0, -1.0, 3.0, -15.0, 105.0],
    &[1.0, -1.0, 3.0, -15.0, 105.0, -945.0, 10395.0],
];
/// 1 / root(pi), root(pi) / 2 and 1 / root(2).
const FRAC_1_SQRT_PI: Constant = [0.564189584, std::f64::consts::FRAC_2_SQRT_PI / 2.0];
const HALF_SQRT_PI: Constant = [0.886226925, 0.886_226_925_452_758];
const FRAC_1_SQRT_2: Constant = [
    std::f32::consts::FRAC_1_SQRT_2 as f64,
    std::f64::consts::FRAC_1_SQRT_2,
];

/// `erf(x)`: a polynomial up to 1, 1 less the complement beyond.
pub(super) fn erf(x: Val<'_>) -> Val<'_> {
    let format = Format::of(x);
    let (a, one) = (x.abs(), format.float(1.0));
    let large = difference(one, complement(a)).copysign(x);
    let result = a.lt(one).select(small_erf(x), large);
    x.ne(x).select(x, result)
}

/// `erfc(x)`: 1 less the function up to 1 / 2; beyond, and for negative numbers less than 2.
pub(super) fn erfc(x: Val<'_>) -> Val<'_> {
    let format = Format::of(x);
    let a = x.abs();
    let small = difference(format.float(1.0), small_erf(x));
    let complement = complement(a);
    let is_left = x.lt(format.float(0.0));
    let left = difference(format.float(2.0), complement);
    let large = is_left.select(left, complement);
    let result = a.lt(format.float(0.5)).select(small, large);
    x.ne(x).select(x, result)
}

fn small_erf(x: Val<'_>) -> Val<'_> {
    Format::of(x).polynomial(x * x, ERF).mul_add(x, x)
}

/// `erfc(a)` for `a` from 1 / 2 on.
fn complement(a: Val<'_>) -> Val<'_> {
    let format = Format::of(a);
    let a = a.min(format.constant(VANISHES));
    let square = exact_product(a, a);
    scaled_complement(a) * exp_of_sum(-square.high, Some(-square.low))
}

/// `e^(a^2) erfc(a)` for `a` from 1 / 2 to where the complement vanishes.
fn scaled_complement(a: Val<'_>) -> Val<'_> {
    let format = Format::of(a);
    let center = format.constant(CENTER);
    let scaled = format.polynomial(difference(a, center) / sum(a, center), SCALED_ERFC);
    scaled / a.mul_add(format.float(2.0), format.float(1.0))
}

/// `e^(x^2) erfc(x)`: by the complement's polynomial, beyond by its series, of negative numbers what is left of 2
/// e^(x^2).
pub(super) fn erfcx(x: Val<'_>) -> Val<'_> {
    let format = Format::of(x);
    let a = x.abs();
    let square = exact_product(x, x);
    let power = exp_of_sum(square.high, Some(square.low));
    let small = difference(format.float(1.0), small_erf(x)) * power;
    let inverse = format.float(1.0) / a;
    let z = inverse * inverse * format.float(0.5);
    let series = format.polynomial(z, ASYMPTOTIC) * inverse * format.constant(FRAC_1_SQRT_PI);
    let vanishes = format.constant(VANISHES);
    let scaled = scaled_complement(a.min(vanishes));
    let scaled = a.lt(vanishes).select(scaled, series);
    let is_left = x.lt(format.float(0.0));
    let left = power.mul_add(format.float(2.0), -scaled);
    let large = is_left.select(left, scaled);
    let result = a.lt(format.float(0.5)).select(small, large);
    x.ne(x).select(x, result)
}

/// Half of `erfc(-x / root(2))`, with the exponential of the exact square of x.
pub(super) fn normcdf(x: Val<'_>) -> Val<'_> {
    let format = Format::of(x);
    let (half, one) = (format.float(0.5), format.float(1.0));
    let a = x * format.constant(FRAC_1_SQRT_2);
    let near = small_erf(a).mul_add(half, half);
    let square = exact_product(x, x);
    let power = exp_of_sum(square.high * -half, Some(square.low * -half));
    let bounded = a.abs().min(format.constant(VANISHES));
    let tail = scaled_complement(bounded) * half * power;
    let beyond = x.abs().gt(format.constant([20.0, 40.0]));
    let tail = beyond.select(format.float(0.0), tail);
    let far = x.lt(format.float(0.0)).select(tail, difference(one, tail));
    let result = a.abs().lt(half).select(near, far);
    x.ne(x).select(x, result)
}

/// The inverse of the error function: two polynomials in the logarithm of 1 - x^2, and for `f64` a step of Halley's
/// method.
pub(super) fn erf_inv(x: Val<'_>) -> Val<'_> {
    let format = Format::of(x);
    let (a, one) = (x.abs(), format.float(1.0));
    let less = difference(one, a);
    let w = -ln(less * sum(a, one));
    let near = format.polynomial(sum(w, format.float(-2.5)), ERF_INV);
    let root = w.abs().sqrt();
    let far = format.polynomial(difference(root, format.constant(TAIL_CENTER)), ERF_INV_TAIL);
    let result = w.lt(format.float(5.0)).select(near, far) * a;
    let result = match format.is_double() {
        true => halley(result, a, less),
        false => result,
    };
    let result = a.eq(one).select(format.infinity(), result);
    let result = a.gt(one).select(format.nan(), result);
    x.ne(x).select(x, result.copysign(x))
}

/// A number nearer to where the error function is `a`, which is less than 1 by `less`.
fn halley<'k>(y: Val<'k>, a: Val<'k>, less: Val<'k>) -> Val<'k> {
    let format = Format::of(y);
    let near = difference(small_erf(y), a);
    let far = difference(less, complement(y));
    let off = a.lt(format.float(0.75)).select(near, far);
    let step = off * exp(y * y) * format.constant(HALF_SQRT_PI);
    difference(y, step / y.mul_add(step, format.float(1.0)))
}

/// What the functions are on the host, by the polynomials of `f64`.
pub(super) mod on_host {
    use super::*;

    fn polynomial(x: f64, coefficients: Coefficients) -> f64 {
        let terms = coefficients[1].iter().rev();
        terms.fold(0.0, |sum, &c| sum.mul_add(x, c))
    }

    pub(in crate::math) fn erf(x: f64) -> f64 {
        match x.abs() {
            a if a < 1.0 => polynomial(x * x, ERF).mul_add(x, x),
            a if a >= 1.0 => (1.0 - complement(a)).copysign(x),
            _ => x,
        }
    }

    pub(in crate::math) fn erfc(x: f64) -> f64 {
        match x.abs() {
            a if a < 0.5 => 1.0 - erf(x),
            a if x > 0.0 => complement(a),
            a if x < 0.0 => 2.0 - complement(a),
            _ => x,
        }
    }

    fn complement(a: f64) -> f64 {
        let a = a.min(VANISHES[1]);
        let square = a * a;
        let rest = a.mul_add(a, -square);
        let power = (-square).exp() * (1.0 - rest);
        scaled_complement(a) * power
    }

    fn scaled_complement(a: f64) -> f64 {
        let scaled = polynomial((a - CENTER[1]) / (a + CENTER[1]), SCALED_ERFC);
        scaled / a.mul_add(2.0, 1.0)
    }

    pub(in crate::math) fn erfcx(x: f64) -> f64 {
        let power = || {
            let square = x * x;
            let rest = x.mul_add(x, -square);
            square.exp() * if square < 1e3 { 1.0 + rest } else { 1.0 }
        };
        let scaled = |a: f64| match a < VANISHES[1] {
            true => scaled_complement(a),
            false => polynomial(0.5 / a / a, ASYMPTOTIC) / a * FRAC_1_SQRT_PI[1],
        };
        match x.abs() {
            a if a < 0.5 => (1.0 - erf(x)) * power(),
            a if x > 0.0 => scaled(a),
            a if x < 0.0 => 2.0f64.mul_add(power(), -scaled(a)),
            _ => x,
        }
    }

    pub(in crate::math) fn normcdf(x: f64) -> f64 {
        let a = x * FRAC_1_SQRT_2[1];
        let tail = || {
            let square = x * x;
            let rest = x.mul_add(x, -square);
            let power = match square < 1600.0 {
                true => (square * -0.5).exp() * (1.0 - rest * 0.5),
                false => 0.0,
            };
            scaled_complement(a.abs().min(VANISHES[1])) * 0.5 * power
        };
        match x {
            _ if a.abs() < 0.5 => 0.5 * erf(a) + 0.5,
            0.0.. => 1.0 - tail(),
            ..0.0 => tail(),
            _ => x,
        }
    }

    pub(in crate::math) fn erf_inv(x: f64) -> f64 {
        let a = x.abs();
        if a.is_nan() || a > 1.0 {
            return f64::NAN;
        }
        if a == 1.0 {
            return f64::INFINITY.copysign(x);
        }
        let less = 1.0 - a;
        let w = -(less * (a + 1.0)).ln();
        let y = a * match w < 5.0 {
            true => polynomial(w - 2.5, ERF_INV),
            false => polynomial(w.sqrt() - TAIL_CENTER[1], ERF_INV_TAIL),
        };
        let off = match a < 0.75 {
            true => erf(y) - a,
            false => less - erfc(y),
        };
        let step = off * (y * y).exp() * HALF_SQRT_PI[1];
        (y - step / y.mul_add(step, 1.0)).copysign(x)
    }
}
