//! The functions of one `f64` as pairs: identities and series whose terms are known to be enough, with no table and no
//! coefficient but logarithms, pi, two roots and Stirling's fractions. Roots of the third degree and inverses are a step from the function's
//! own result, which doubles its right digits: one that is off is off from it by as much.
//!
//! How many terms a series has follows from the largest argument that it is for: the first one that is left out is below
//! 2^-105 of the sum. Arguments are those of which a [`Function`](super::Function) is tried.

use std::f64::consts;

use kiln::prelude::*;

use super::pair::{Constant, Kept, Pair, continued, series};

const LN_2: Constant = [consts::LN_2, 2.319_046_813_846_299_6e-17];
const LN_10: Constant = [consts::LN_10, -2.170_756_223_382_249_4e-16];
const PI: Constant = [consts::PI, 1.224_646_799_147_353_2e-16];

/// `1 / sqrt(pi)`.
const INVERSE_ROOT_PI: Constant = [0.564_189_583_547_756_3, 7.667_729_806_582_94e-18];
const ROOT_2: Constant = [consts::SQRT_2, -9.667_293_313_452_913e-17];

/// Half of the logarithm of 2 pi.
const HALF_LN_2_PI: Constant = [0.918_938_533_204_672_8, -3.878_294_158_067_241_4e-17];

/// Stirling's series: B(2k) / (2k (2k - 1)) for k from 1 on (DLMF, 5.11.1). Behind these the next term of 40 or more is
/// below 2^-110.
const STIRLING: [[f64; 2]; 12] = [
    [1.0, 12.0],
    [-1.0, 360.0],
    [1.0, 1260.0],
    [-1.0, 1680.0],
    [1.0, 1188.0],
    [-691.0, 360_360.0],
    [1.0, 156.0],
    [-3617.0, 122_400.0],
    [43_867.0, 244_188.0],
    [-174_611.0, 125_400.0],
    [77_683.0, 5796.0],
    [-236_364_091.0, 1_506_960.0],
];

/// Half of pi, whose digits reach 212 bits down.
const HALF_PI: [f64; 4] = [
    consts::FRAC_PI_2,
    6.123_233_995_736_766e-17,
    -1.497_384_904_859_169_8e-33,
    5.562_271_104_316_826e-50,
];

/// The first 1344 bits of 2 / pi after the binary point, after 64 zero bits.
const TWO_OVER_PI: [u64; 22] = [
    0,
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
    0x5603_3046_fc7b_6bab,
    0xf0cf_bc20_9af4_361d,
    0xa9e3_9161_5ee6_1b08,
];

/// Below this series are taken for what else would cancel.
const SMALL: f64 = 0.3;

/// `e^r - 1` for `r` of at most 0.35 in magnitude: the sum of r^n / n!.
fn small_exp_m1(r: Pair<'_>) -> Pair<'_> {
    series(r, 24, |term, n| {
        let term = term * r / Pair::of(n + 1.0);
        [term, term]
    })
}

fn exp_of(x: Pair<'_>) -> Pair<'_> {
    let n = (x.high * consts::LOG2_E).round_ties_even();
    let r = x - Pair::constant(x.builder(), LN_2).times(n);
    (small_exp_m1(r) + x.beside(1.0)).shifted(n.cast(Type::I64))
}

fn exp_m1_of(x: Pair<'_>) -> Pair<'_> {
    let far = exp_of(x) - x.beside(1.0);
    let near = small_exp_m1(x);
    Pair::chosen(x.high.abs().lt(SMALL), near, far)
}

/// `2 artanh(s)` for `s` of at most 0.18 in magnitude: twice the sum of s^(2n + 1) / (2n + 1).
fn small_atanh_twice(s: Pair<'_>) -> Pair<'_> {
    let square = s * s;
    let half = series(s, 21, |power, n| {
        let power = power * square;
        [power, power / Pair::of(n + n + 1.0)]
    });
    half + half
}

/// The logarithm of a positive number, of which the power of two is taken out.
fn ln_of(x: Pair<'_>) -> Pair<'_> {
    let k = x.builder();
    let bits = x.high.bitcast(Type::I64);
    let exponent = (bits >> 52) - 1023;
    let significand = (bits & ((1i64 << 52) - 1)) | (1023i64 << 52);
    let is_large = significand.bitcast(Type::F64).gt(consts::SQRT_2);
    let exponent = exponent + is_large.select(k.lit(Type::I64, 1), k.lit(Type::I64, 0));
    let m = x.shifted(-exponent);
    let (one, power) = (x.beside(1.0), exponent.cast(Type::F64));
    small_atanh_twice((m - one) / (m + one)) + Pair::constant(k, LN_2).times(power)
}

fn ln_1p_of(x: Pair<'_>) -> Pair<'_> {
    let near = small_atanh_twice(x / (x + x.beside(2.0)));
    let far = ln_of(x + x.beside(1.0));
    Pair::chosen(x.high.abs().lt(SMALL), near, far)
}

/// Sine and cosine of at most pi / 4: the alternating sums of r^n / n! of odd and of even n.
fn small_sin_cos<'k>(r: Pair<'k>) -> [Pair<'k>; 2] {
    let square = -(r * r);
    let of = |first: Pair<'k>, more: f64| {
        // Each term has two factors more below.
        series(first, 15, |term, n| {
            let (lower, upper) = (n + n + (more - 1.0), n + n + more);
            let term = term * square / Pair::of(lower * upper);
            [term, term]
        })
    };
    [of(r, 1.0), of(r.beside(1.0), 0.0)]
}

/// Sine and cosine of `r` and so many quarters of a turn.
fn turned<'k>(r: Pair<'k>, quarters: Val<'k>) -> [Pair<'k>; 2] {
    let [sin, cos] = small_sin_cos(r);
    let quarters = quarters.cast(Type::I64) & 3;
    let is_odd = (quarters & 1).eq(1);
    let of = |even: Pair<'k>, odd: Pair<'k>, turn: Val<'k>| {
        let value = Pair::chosen(is_odd, odd, even);
        Pair::chosen((turn & 2).eq(2), -value, value)
    };
    [of(sin, cos, quarters), of(cos, sin, quarters + 1)]
}

/// Sine and cosine of a number below 2^30: what is left of it next to a multiple of pi / 2 is 2^-62 or more, and that of
/// the multiple known to 2^-180.
fn sin_cos<'k>(x: Val<'k>) -> [Pair<'k>; 2] {
    let n = (x * consts::FRAC_2_PI).round_ties_even();
    let k = x.builder();
    let less = |rest: Pair<'k>, part: f64| rest - Pair::constant(k, [part, 0.0]).times(n);
    turned(HALF_PI.into_iter().fold(Pair::of(x), less), n)
}

/// Sine and cosine of a number from 2^30 on: of its significand's product with 256 bits of 2 / pi, from that on whose part is two
/// quarters of a turn, what is left of a quarter is right to 2^-200, and 2^-62 or more.
fn sin_cos_of_large<'k>(x: Val<'k>) -> [Pair<'k>; 2] {
    let k = x.builder();
    let bits = x.abs().bitcast(Type::U64);
    let significand = (bits & ((1u64 << 52) - 1)) | (1u64 << 52);
    let start = (bits >> 52u32) - (1023 + 52 - 62u64);
    let (limb, shift) = ((start >> 6u32).cast(Type::U32), start & 63u64);
    let table = k.constant_array("two_over_pi", &TWO_OVER_PI);
    let word = |n: u32| table.at(limb + n).get();
    let window = |n: u32| (word(n) << shift) | ((word(n + 1) >> 1u32) >> (-shift + 63u64));
    let mut product = Vec::new();
    let mut carried = k.lit(Type::U64, 0);
    for n in (0..4).rev() {
        let word = window(n);
        let sum = word * significand + carried;
        let is_over = sum.lt(carried).cast(Type::U64);
        carried = k.mul_hi(word, significand) + is_over;
        product.insert(0, sum);
    }
    let two_bits_on = |n: usize| (product[n] << 2u32) | (product[n + 1] >> 62u32);
    let fraction = [0, 1, 2].map(two_bits_on);
    // Of more than a half what lacks to the next quarter.
    let is_over = (fraction[0] >> 63u32).eq(1u64);
    let quarters = (product[0] >> 62u32) + is_over.cast(Type::U64);
    let half = |word: Val<'k>, unit: i32| Pair::of(word.cast(Type::F64) * f64::from(unit).exp2());
    let rest = (0i32..)
        .zip(fraction)
        .fold(Pair::of(k.lit(Type::F64, 0.0)), |sum, (n, word)| {
            let word = is_over.select(!word, word);
            let sum = sum + half(word >> 32u32, -32 - 64 * n);
            sum + half(word & 0xffff_ffffu64, -64 - 64 * n)
        });
    let angle = rest * Pair::constant(k, [HALF_PI[0], HALF_PI[1]]);
    let angle = Pair::chosen(is_over, -angle, angle).signed(x);
    let quarters = quarters.cast(Type::I64);
    turned(angle, x.lt(0.0).select(-quarters, quarters))
}

/// Sine and cosine of pi times a number.
fn sin_cos_pi(x: Val<'_>) -> [Pair<'_>; 2] {
    let n = (x * 2.0).round_ties_even();
    let rest = x - n * 0.5;
    turned(Pair::constant(x.builder(), PI).times(rest), n)
}

/// The arc tangent: of numbers above 1 by that of the inverse, of others by thrice half the angle, and of that the
/// alternating sum of t^(2n + 1) / (2n + 1), of a `t` of at most tan(pi / 32).
fn atan_of(x: Pair<'_>) -> Pair<'_> {
    let k = x.builder();
    let magnitude = x.signed(x.high);
    let (one, is_large) = (x.beside(1.0), magnitude.high.gt(1.0));
    let start = Pair::chosen(is_large, one / magnitude, magnitude);
    let t = (0..3).fold(start, |t, _| t / (one + (one + t * t).sqrt()));
    let square = -(t * t);
    let eighth = series(t, 16, |power, n| {
        let power = power * square;
        [power, power / Pair::of(n + n + 1.0)]
    });
    let angle = eighth.scaled(k.lit(Type::F64, 8.0));
    let right = Pair::constant(k, [HALF_PI[0], HALF_PI[1]]);
    Pair::chosen(is_large, right - angle, angle).signed(x.high)
}

/// `1 - x` and `1 + x`.
fn beside_one(x: Val<'_>) -> [Pair<'_>; 2] {
    let x = Pair::of(x);
    [x.beside(1.0) - x, x.beside(1.0) + x]
}

/// The cube root, by one step of Newton's method from the function's own result.
fn cbrt_of(x: Val<'_>) -> Pair<'_> {
    let near = Pair::of(x.cbrt());
    let square = near * near;
    near - (square * near - Pair::of(x)) / (square + square + square)
}

pub(super) fn recip(x: Val<'_>) -> Pair<'_> {
    let x = Pair::of(x);
    x.beside(1.0) / x
}

pub(super) fn sqrt(x: Val<'_>) -> Pair<'_> {
    Pair::of(x).sqrt()
}

pub(super) fn rsqrt(x: Val<'_>) -> Pair<'_> {
    let root = sqrt(x);
    root.beside(1.0) / root
}

pub(super) fn cbrt(x: Val<'_>) -> Pair<'_> {
    cbrt_of(x)
}

pub(super) fn rcbrt(x: Val<'_>) -> Pair<'_> {
    let root = cbrt_of(x);
    root.beside(1.0) / root
}

pub(super) fn exp(x: Val<'_>) -> Pair<'_> {
    exp_of(Pair::of(x))
}

pub(super) fn exp2(x: Val<'_>) -> Pair<'_> {
    let n = x.round_ties_even();
    let r = Pair::constant(x.builder(), LN_2).times(x - n);
    (small_exp_m1(r) + r.beside(1.0)).shifted(n.cast(Type::I64))
}

pub(super) fn exp10(x: Val<'_>) -> Pair<'_> {
    exp_of(Pair::constant(x.builder(), LN_10).times(x))
}

pub(super) fn exp_m1(x: Val<'_>) -> Pair<'_> {
    exp_m1_of(Pair::of(x))
}

pub(super) fn ln(x: Val<'_>) -> Pair<'_> {
    ln_of(Pair::of(x))
}

pub(super) fn ln_1p(x: Val<'_>) -> Pair<'_> {
    ln_1p_of(Pair::of(x))
}

pub(super) fn log2(x: Val<'_>) -> Pair<'_> {
    ln(x) / Pair::constant(x.builder(), LN_2)
}

pub(super) fn log10(x: Val<'_>) -> Pair<'_> {
    ln(x) / Pair::constant(x.builder(), LN_10)
}

pub(super) fn sin(x: Val<'_>) -> Pair<'_> {
    sin_cos(x)[0]
}

pub(super) fn cos(x: Val<'_>) -> Pair<'_> {
    sin_cos(x)[1]
}

pub(super) fn tan(x: Val<'_>) -> Pair<'_> {
    let [sin, cos] = sin_cos(x);
    sin / cos
}

pub(super) fn sin_of_large(x: Val<'_>) -> Pair<'_> {
    sin_cos_of_large(x)[0]
}

pub(super) fn cos_of_large(x: Val<'_>) -> Pair<'_> {
    sin_cos_of_large(x)[1]
}

pub(super) fn tan_of_large(x: Val<'_>) -> Pair<'_> {
    let [sin, cos] = sin_cos_of_large(x);
    sin / cos
}

pub(super) fn sin_pi(x: Val<'_>) -> Pair<'_> {
    sin_cos_pi(x)[0]
}

pub(super) fn cos_pi(x: Val<'_>) -> Pair<'_> {
    sin_cos_pi(x)[1]
}

pub(super) fn asin(x: Val<'_>) -> Pair<'_> {
    let [below, above] = beside_one(x);
    atan_of(Pair::of(x) / (below * above).sqrt())
}

pub(super) fn acos(x: Val<'_>) -> Pair<'_> {
    let [below, above] = beside_one(x);
    let half = atan_of((below / above).sqrt());
    half + half
}

pub(super) fn atan(x: Val<'_>) -> Pair<'_> {
    atan_of(Pair::of(x))
}

pub(super) fn sinh(x: Val<'_>) -> Pair<'_> {
    // With e = e^|x| - 1: (e + e / (1 + e)) / 2, where nothing cancels.
    let e = exp_m1_of(Pair::of(x.abs()));
    let twice = e + e / (e + e.beside(1.0));
    twice.scaled(x.builder().lit(Type::F64, 0.5)).signed(x)
}

pub(super) fn cosh(x: Val<'_>) -> Pair<'_> {
    let e = exp_of(Pair::of(x.abs()));
    let twice = e + e.beside(1.0) / e;
    twice.scaled(x.builder().lit(Type::F64, 0.5))
}

pub(super) fn tanh(x: Val<'_>) -> Pair<'_> {
    let e = exp_m1_of(Pair::of(x.abs() * 2.0));
    (e / (e + e.beside(2.0))).signed(x)
}

pub(super) fn asinh(x: Val<'_>) -> Pair<'_> {
    let magnitude = Pair::of(x.abs());
    let (one, square) = (magnitude.beside(1.0), magnitude * magnitude);
    ln_1p_of(magnitude + square / (one + (one + square).sqrt())).signed(x)
}

pub(super) fn acosh(x: Val<'_>) -> Pair<'_> {
    let x = Pair::of(x);
    let above = x - x.beside(1.0);
    ln_1p_of(above + (above * (above + above.beside(2.0))).sqrt())
}

pub(super) fn atanh(x: Val<'_>) -> Pair<'_> {
    let magnitude = Pair::of(x.abs());
    let below = magnitude.beside(1.0) - magnitude;
    let twice = ln_1p_of((magnitude + magnitude) / below);
    twice.scaled(x.builder().lit(Type::F64, 0.5)).signed(x)
}

/// The error function of at most 2 in magnitude: e^-z^2 times the sum of 2 (2 z^2)^n z / (1 3 .. (2n + 1)), none of whose
/// terms cancels another (DLMF, 7.6.2).
fn small_erf(z: Pair<'_>) -> Pair<'_> {
    let square = z * z;
    let sum = series(z, 60, |term, n| {
        let term = term * (square + square) / Pair::of(n + n + 1.0);
        [term, term]
    });
    sum * slope_of_erf(z)
}

/// `2 / sqrt(pi) e^-z^2`.
fn slope_of_erf(z: Pair<'_>) -> Pair<'_> {
    let inverse = Pair::constant(z.builder(), INVERSE_ROOT_PI);
    exp_of(-(z * z)) * (inverse + inverse)
}

/// `e^z^2 erfc(z)` of 2 or more: the continued fraction whose numerators are halves (DLMF, 7.9.1), from its end.
fn large_erfcx(z: Pair<'_>) -> Pair<'_> {
    const DEPTH: u32 = 200;
    let k = z.builder();
    let fraction = continued(z, DEPTH, |below, n| {
        let number = k.lit(Type::F64, f64::from(DEPTH)) - n;
        z + Pair::of((number + 1.0) * 0.5) / below
    });
    Pair::constant(k, INVERSE_ROOT_PI) / fraction
}

fn erfc_of(z: Pair<'_>) -> Pair<'_> {
    let magnitude = z.signed(z.high);
    let small = z.beside(1.0) - small_erf(z);
    let tail = exp_of(-(z * z)) * large_erfcx(magnitude);
    let large = Pair::chosen(z.high.lt(0.0), z.beside(2.0) - tail, tail);
    Pair::chosen(magnitude.high.lt(2.0), small, large)
}

fn erf_of(z: Pair<'_>) -> Pair<'_> {
    let magnitude = z.signed(z.high);
    let large = z.beside(1.0) - erfc_of(magnitude);
    Pair::chosen(magnitude.high.lt(2.0), small_erf(z), large.signed(z.high))
}

pub(super) fn erf(x: Val<'_>) -> Pair<'_> {
    erf_of(Pair::of(x))
}

pub(super) fn erfc(x: Val<'_>) -> Pair<'_> {
    erfc_of(Pair::of(x))
}

pub(super) fn erfcx(x: Val<'_>) -> Pair<'_> {
    let x = Pair::of(x);
    let small = exp_of(x * x) * erfc_of(x);
    Pair::chosen(x.high.lt(2.0), small, large_erfcx(x))
}

pub(super) fn normcdf(x: Val<'_>) -> Pair<'_> {
    let k = x.builder();
    let half = k.lit(Type::F64, 0.5);
    erfc_of(Pair::constant(k, ROOT_2).scaled(-half).times(x)).scaled(half)
}

/// The positive number whose error function is `erf`, and that of the complement `erfc`, by one step of Newton's method
/// from `near`, the function's own result; of the two whichever is less than a half.
fn inverse_of_erf<'k>(erf: Pair<'k>, erfc: Pair<'k>, near: Pair<'k>) -> Pair<'k> {
    let over = erf_of(near) - erf;
    let under = erfc - erfc_of(near);
    let rest = Pair::chosen(erf.high.lt(0.5), over, under);
    near - rest / slope_of_erf(near)
}

pub(super) fn erf_inv(x: Val<'_>) -> Pair<'_> {
    let magnitude = Pair::of(x.abs());
    let left = magnitude.beside(1.0) - magnitude;
    inverse_of_erf(magnitude, left, Pair::of(x.erf_inv().abs())).signed(x)
}

pub(super) fn erfc_inv(x: Val<'_>) -> Pair<'_> {
    let (is_large, whole) = (x.gt(1.0), Pair::of(x));
    let own = Pair::chosen(is_large, whole.beside(2.0) - whole, whole);
    let near = Pair::of(x.erfc_inv().abs());
    let value = inverse_of_erf(own.beside(1.0) - own, own, near);
    Pair::chosen(is_large, -value, value)
}

pub(super) fn normcdf_inv(x: Val<'_>) -> Pair<'_> {
    let (is_small, whole) = (x.lt(0.5), Pair::of(x));
    let own = Pair::chosen(is_small, whole, whole.beside(1.0) - whole);
    let own = own + own;
    let root = Pair::constant(x.builder(), ROOT_2);
    let near = Pair::of(x.normcdf_inv().abs()) / root;
    let value = inverse_of_erf(own.beside(1.0) - own, own, near) * root;
    Pair::chosen(is_small, -value, value)
}

/// The logarithm of the gamma function of 40 or more.
fn large_ln_gamma(z: Pair<'_>) -> Pair<'_> {
    let k = z.builder();
    let inverse = z.beside(1.0) / z;
    let square = inverse * inverse;
    let next = |sum, [number, by]: [f64; 2]| sum * square + z.beside(number) / z.beside(by);
    let sum = STIRLING.into_iter().rev().fold(z.beside(0.0), next);
    let rest = Pair::constant(k, HALF_LN_2_PI) + sum * inverse;
    (z - z.beside(0.5)) * ln_of(z) - z + rest
}

/// A number from 40 on whose gamma function is that of a positive one times the second result.
fn raised<'k>(x: Pair<'k>) -> [Pair<'k>; 2] {
    const LEAST: u32 = 40;
    let (number, product) = (Kept::new(x), Kept::new(x.beside(1.0)));
    x.builder().for_range(0u32, LEAST, |_| {
        let (at, so_far) = (number.get(), product.get());
        let is_small = at.high.lt(f64::from(LEAST));
        product.set(Pair::chosen(is_small, so_far * at, so_far));
        number.set(Pair::chosen(is_small, at + at.beside(1.0), at));
    });
    [number.get(), product.get()]
}

/// The gamma function, of negative numbers pi / (sin(pi x) gamma(1 - x)).
pub(super) fn gamma(x: Val<'_>) -> Pair<'_> {
    let (is_negative, whole) = (x.lt(0.0), Pair::of(x));
    let [z, product] = raised(Pair::chosen(is_negative, whole.beside(1.0) - whole, whole));
    let value = exp_of(large_ln_gamma(z)) / product;
    let turned = Pair::constant(x.builder(), PI) / (sin_pi(x) * value);
    Pair::chosen(is_negative, turned, value)
}

/// The logarithm of the gamma function of positive numbers that are not near 1 and 2, where it is none.
pub(super) fn ln_gamma(x: Val<'_>) -> Pair<'_> {
    let [z, product] = raised(Pair::of(x));
    large_ln_gamma(z) - ln_of(product)
}

/// The logarithm of the gamma function of minus the magnitude: that of pi less those of the sine of pi times it and of the gamma
/// function one further; 0 at poles.
pub(super) fn ln_gamma_of_negative(x: Val<'_>) -> Pair<'_> {
    let x = x.abs();
    let one = Pair::of(x).beside(1.0);
    let [z, product] = raised(Pair::of(x) + one);
    let further = large_ln_gamma(z) - ln_of(product);
    let sine = sin_pi(x);
    let is_pole = sine.high.eq(0.0);
    let sine = Pair::chosen(is_pole, one, sine.signed(sine.high));
    let ln_pi = ln_of(Pair::constant(x.builder(), PI));
    let value = ln_pi - ln_of(sine) - further;
    Pair::chosen(is_pole, one.beside(0.0), value)
}
