//! The error function, its complement, their inverses, and the normal distribution.

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

/// The inverse of the error function by its argument x, less root(pi) / 2 and by w = -ln(1 - x^2), as a polynomial in w,
/// which is up to 5: 2^-29 of the inverse, but near 0 what root(pi) / 2 is off, and 2^-20.
const ERF_INV: Coefficients = [
    &[
        0.232013002,
        0.0115529699,
        -0.00234398921,
        -0.000115898962,
        3.6399455e-05,
        7.54645862e-06,
        -2.94924348e-06,
        3.82705252e-07,
        -2.37446294e-08,
        5.90026306e-10,
    ],
    &[
        0.23201431631200506,
        0.011536544142703569,
        -0.002293141624973688,
        -0.00018057115143866811,
        7.831614977461944e-05,
        -7.688968279660094e-06,
        2.5601720219151706e-07,
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

/// The inverse of the complement by r = root(-ln x) and divided by r, as a polynomial in (r - c) / (r + c), for x up to
/// 1/2 and r up to 3: 2^-28 and 2^-56 of it.
const ERFC_INV: Coefficients = [
    &[
        0.636716127,
        0.682602942,
        -0.202515259,
        -0.257655174,
        0.128717124,
        0.112621836,
        -0.114112854,
        -0.0487206317,
        0.111261286,
        -0.0495491922,
    ],
    &[
        0.6367161372196165,
        0.6826029167973252,
        -0.2025152605639662,
        -0.25765435906100304,
        0.12871527960975632,
        0.11254418530331027,
        -0.11369297171794422,
        -0.04741462547191046,
        0.09439972435843644,
        0.005771172830447271,
        -0.07595262838587881,
        0.019052464399643032,
        0.054057261905552975,
        -0.02665039094880361,
        -0.061241646420717326,
        0.09833018105837367,
        -0.0652544170207145,
        0.021673069497192447,
        -0.003249106463335315,
    ],
];
/// The number c of that quotient.
const ROOT_CENTER: f64 = 1.0;

/// The inverse of the complement in the same form, for r beyond 3, to where x is the least number of the format: 2^-33
/// and 2^-55 of it.
const ERFC_INV_TAIL: Coefficients = [
    &[
        0.955876946,
        0.137487426,
        -0.197804928,
        0.208312124,
        -0.195951656,
        0.167481259,
        -0.130586162,
        0.0898600593,
        -0.0473673344,
        0.00686182687,
        0.0103544537,
    ],
    &[
        0.9558769717266672,
        0.13748742983982457,
        -0.19780489056428313,
        0.20831214302451673,
        -0.1959551891314865,
        0.16748469857093062,
        -0.1304475033373445,
        0.08957912605861387,
        -0.04944001261229438,
        0.01311032191174133,
        0.016947987370699708,
        -0.03940929050735257,
        0.053628002710527846,
        -0.0598851172479362,
        0.05895418772046213,
        -0.051670286690814575,
        0.03873543330835652,
        -0.022667049300160343,
        0.008840116745918345,
        -0.0016434851706230418,
        -2.8597564053553845e-05,
    ],
];
/// The number c of that quotient.
const FAR_ROOT_CENTER: f64 = 5.0;

/// The series of x root(pi) erfcx(x) in 1 / (2 x^2), for large x: (2 n - 1)!! with alternating signs.
const ASYMPTOTIC: Coefficients = [
    &[1.0, -1.0, 3.0, -15.0, 105.0],
    &[1.0, -1.0, 3.0, -15.0, 105.0, -945.0, 10395.0],
];
/// log2(erfc(a)) / a as a polynomial in a, for a from 1 to where the complement is nothing beside 1: 2^-28 and 2^-56 of
/// erf.
const LOG2_ERFC: Coefficients = [
    &[
        -1.6280525,
        -0.9173112,
        -0.15165019,
        0.032891024,
        -0.004597734,
        0.00030388776,
    ],
    &[
        -1.6279069474465344,
        -0.9184488817591758,
        -0.148266961328661,
        0.027591488388735146,
        0.00030590997730358885,
        -0.002441925254537244,
        0.0008290656298587063,
        1.399861430896688e-06,
        -0.00013775404684232697,
        8.084468497360277e-05,
        -2.9360157938448483e-05,
        7.769081196034701e-06,
        -1.5553700476802823e-06,
        2.3518674181436743e-07,
        -2.6156164458880306e-08,
        2.0231713378783e-09,
        -9.730031528800376e-11,
        2.1910624182643502e-12,
    ],
];
/// Numbers from which on the complement is nothing beside 1.
const NOTHING: Constant = [4.1, 6.0];
/// 2^f for |f| up to 1/2: relative error 2^-26 and 2^-54.
const EXP2: Coefficients = [
    &[
        1.0,
        std::f32::consts::LN_2 as f64,
        0.24022646,
        0.055503286,
        0.009618489,
        0.0013399936,
        0.00015345853,
    ],
    &[
        1.0,
        std::f64::consts::LN_2,
        0.24022650695910155,
        0.05550410866481992,
        0.009618129107588321,
        0.0013333558146789981,
        0.0001540353046252696,
        1.5252733489967586e-05,
        1.321543308458426e-06,
        1.0178198022143209e-07,
        7.074106361470451e-09,
        4.43528343329545e-10,
    ],
];

/// 1 / root(pi), root(pi) / 2 and 1 / root(2).
const FRAC_1_SQRT_PI: Constant = [0.564189584, std::f64::consts::FRAC_2_SQRT_PI / 2.0];
const HALF_SQRT_PI: Constant = [0.886226925, 0.886_226_925_452_758];
const FRAC_1_SQRT_2: Constant = [
    std::f32::consts::FRAC_1_SQRT_2 as f64,
    std::f64::consts::FRAC_1_SQRT_2,
];
/// root(2).
const SQRT_2: Constant = [std::f32::consts::SQRT_2 as f64, std::f64::consts::SQRT_2];

/// `erf(x)`: a polynomial up to 1, 1 less the complement as a power of 2 beyond.
pub(super) fn erf(x: Val<'_>) -> Val<'_> {
    let format = Format::of(x);
    let (a, one) = (x.abs(), format.float(1.0));
    let bounded = a.min(format.constant(NOTHING));
    let slope = format.polynomial(bounded, LOG2_ERFC);
    let (j, n) = format.rounded_product(bounded, slope);
    // The logarithm itself is never rounded.
    let power = format.polynomial(bounded.mul_add(slope, -j), EXP2);
    let large = difference(one, format.times_power_of_two(power, n)).copysign(x);
    a.ge(one).select(large, small_erf(x))
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
    let w = -ln((-a).mul_add(a, one));
    let root = w.abs().sqrt();
    let far = format.polynomial(difference(root, format.constant(TAIL_CENTER)), ERF_INV_TAIL);
    let result = (w.lt(format.float(5.0))).select(near_erf_inv(a, w), far * a);
    let result = match format.is_double() {
        true => halley(result, a, difference(one, a)),
        false => result,
    };
    let result = a.eq(one).select(format.infinity(), result);
    let result = a.gt(one).select(format.nan(), result);
    x.ne(x).select(x, result.copysign(x))
}

/// The inverse of the error function for `w = -ln(1 - a^2)` up to 5, of `f64` the first digits of it. Both terms are
/// products with `a`, as the product of their sum would be rounded twice.
fn near_erf_inv<'k>(a: Val<'k>, w: Val<'k>) -> Val<'k> {
    let format = Format::of(a);
    let slope = a * format.polynomial(w, ERF_INV);
    w.mul_add(slope, a * format.constant(HALF_SQRT_PI))
}

/// The inverse of the complement: of its argument or what that lacks of 2, whichever is less.
pub(super) fn erfc_inv(x: Val<'_>) -> Val<'_> {
    let format = Format::of(x);
    let less = x.min(difference(format.float(2.0), x));
    let (y, left) = (complement_inverse(less), x.gt(format.float(1.0)));
    let result = left.select(-y, y);
    x.ne(x).select(x, result)
}

/// Minus root(2) times the inverse of the complement, of twice the argument.
pub(super) fn normcdf_inv(x: Val<'_>) -> Val<'_> {
    let format = Format::of(x);
    let twice = x * format.float(2.0);
    let less = twice.min(difference(format.float(2.0), twice));
    let y = complement_inverse(less) * format.constant(SQRT_2);
    let result = x.lt(format.float(0.5)).select(-y, y);
    x.ne(x).select(x, result)
}

/// The number whose complement is `x`, from 0 to 1, and NaN below: that of the function for what `x` lacks of 1, which
/// is exact from 1 / 2 on; below by the root of the logarithm.
fn complement_inverse(x: Val<'_>) -> Val<'_> {
    let format = Format::of(x);
    let (zero, one) = (format.float(0.0), format.float(1.0));
    let a = difference(one, x);
    let w = -ln(x * sum(a, one));
    let near = near_erf_inv(a, w);
    let near = match format.is_double() {
        true => halley_step(near, difference(small_erf(near), a)),
        false => near,
    };
    let root = (-ln(x)).max(zero).sqrt();
    let by_root = |center: f64, coefficients| {
        let center = format.float(center);
        format.polynomial(difference(root, center) / sum(root, center), coefficients)
    };
    let factor = root.lt(format.float(3.0)).select(
        by_root(ROOT_CENTER, ERFC_INV),
        by_root(FAR_ROOT_CENTER, ERFC_INV_TAIL),
    );
    let result = x.lt(format.float(0.5)).select(factor * root, near);
    let result = x.eq(zero).select(format.infinity(), result);
    x.lt(zero).select(format.nan(), result)
}

/// A number nearer to where the error function is `a`, which is less than 1 by `less`.
fn halley<'k>(y: Val<'k>, a: Val<'k>, less: Val<'k>) -> Val<'k> {
    let format = Format::of(y);
    let near = difference(small_erf(y), a);
    let far = difference(less, complement(y));
    halley_step(y, a.lt(format.float(0.75)).select(near, far))
}

/// A number nearer to where the error function is less by `off`.
fn halley_step<'k>(y: Val<'k>, off: Val<'k>) -> Val<'k> {
    let format = Format::of(y);
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
        let y = match w < 5.0 {
            true => near_erf_inv(a, w),
            false => a * polynomial(w.sqrt() - TAIL_CENTER[1], ERF_INV_TAIL),
        };
        let off = match a < 0.75 {
            true => erf(y) - a,
            false => less - erfc(y),
        };
        halley_step(y, off).copysign(x)
    }

    fn near_erf_inv(a: f64, w: f64) -> f64 {
        a * w.mul_add(polynomial(w, ERF_INV), HALF_SQRT_PI[1])
    }

    fn halley_step(y: f64, off: f64) -> f64 {
        let step = off * (y * y).exp() * HALF_SQRT_PI[1];
        y - step / y.mul_add(step, 1.0)
    }

    pub(in crate::math) fn erfc_inv(x: f64) -> f64 {
        let y = complement_inverse(if x < 1.0 { x } else { 2.0 - x });
        if x > 1.0 { -y } else { y }
    }

    pub(in crate::math) fn normcdf_inv(x: f64) -> f64 {
        let y = complement_inverse(if x < 0.5 { 2.0 * x } else { 2.0 - 2.0 * x }) * SQRT_2[1];
        if x < 0.5 { -y } else { y }
    }

    /// The number whose complement is `x`, from 0 to 1.
    fn complement_inverse(x: f64) -> f64 {
        let root = (-x.ln()).sqrt();
        let by_root = |center: f64, coefficients| {
            root * polynomial((root - center) / (root + center), coefficients)
        };
        match x {
            0.0 => f64::INFINITY,
            0.5.. => {
                let a = 1.0 - x;
                let y = near_erf_inv(a, -(x * (a + 1.0)).ln());
                halley_step(y, erf(y) - a)
            }
            0.0.. if root < 3.0 => by_root(ROOT_CENTER, ERFC_INV),
            0.0.. => by_root(FAR_ROOT_CENTER, ERFC_INV_TAIL),
            _ => f64::NAN,
        }
    }
}
