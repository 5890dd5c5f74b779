//! The error function and its complement.

use kiln_jit_core::build::Val;

use super::Math as _;
use super::exponential::exp_of_sum;
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
    let power = exp_of_sum(-square.high, Some(-square.low));
    let center = format.constant(CENTER);
    let scaled = format.polynomial(difference(a, center) / sum(a, center), SCALED_ERFC);
    scaled / a.mul_add(format.float(2.0), format.float(1.0)) * power
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
        let scaled = polynomial((a - CENTER[1]) / (a + CENTER[1]), SCALED_ERFC);
        scaled / a.mul_add(2.0, 1.0) * power
    }
}
