//! Sine, cosine and tangent, with full accuracy for every argument.
//!
//! Large arguments are reduced by a function of its own, [`LARGE_ANGLE`], which is called where there is one and
//! inlined nowhere: it is long and seldom needed. In its caller it would be there once for each sine and cosine, and
//! its registers would be those of the whole kernel.

use kiln_jit_core::build::{DeviceFn, Val};
use kiln_jit_core::ir::{
    Cell, Family, Inline, IntrinsicDef, Meaning, Module, PtxFunction, Scalar, Type, TypePattern,
};

use super::Math as _;
use super::format::{
    Coefficients, Constant, Format, Pair, difference, exact_product, exact_sum, exact_sum_of_any,
    sum,
};
use crate::integer::words::Words as _;
use crate::number::Signed as _;

/// 2 / pi.
const TWO_OVER_PI: Constant = [
    std::f32::consts::FRAC_2_PI as f64,
    std::f64::consts::FRAC_2_PI,
];
/// 1 / pi.
pub(super) const FRAC_1_PI: Constant = [
    std::f32::consts::FRAC_1_PI as f64,
    std::f64::consts::FRAC_1_PI,
];
/// pi / 2 in three parts, each rounded towards zero: with parts of one sign zeros keep theirs.
const HALF_PI: [Constant; 3] = [
    [1.570796251296997, std::f64::consts::FRAC_PI_2],
    [7.549789415861596e-08, 6.123233995736765e-17],
    [5.390302529957765e-15, 1.0828566739239139e-32],
];
/// pi / 2 less its first part in `f64`, in one number.
const HALF_PI_LOW: f64 = 6.123233995736766e-17;

/// Arguments up to this one are reduced with pi or pi / 2 in three parts: the first product is below
/// 2^18 (2^31) times the last bit of its factor, so that its difference to the argument is exact.
const LARGE: Constant = [131_072.0, 1_073_741_824.0];

/// (sin(r) / r - 1) / r^2 as a polynomial in r^2, for |r| up to pi / 4: 2^-27 and 2^-57 of sin.
const SIN: Coefficients = [
    &[-0.166666538, 0.00833210815, -0.000195082335],
    &[
        -0.16666666666666627,
        0.00833333333332107,
        -0.00019841269828700005,
        2.755731329919889e-06,
        -2.505069556175249e-08,
        1.589311741595965e-10,
    ],
];

/// (cos(r) - 1 + r^2 / 2) / r^4 as a polynomial in r^2, for |r| up to pi / 4: 2^-32 and 2^-63 of
/// cos.
const COS: Coefficients = [
    &[0.0416666456, -0.00138872978, 2.44300882e-05],
    &[
        0.04166666666666658,
        -0.0013888888888871024,
        2.48015872875881e-05,
        -2.755731381496222e-07,
        2.087565133162751e-09,
        -1.1355970963277022e-11,
    ],
];

/// (sin(r) / r - 1) / r^2 as a polynomial in r^2, for |r| up to pi / 2: 2^-61 of sin.
const SIN_OF_QUARTER: Coefficients = [
    &[],
    &[
        -0.16666666666666666,
        0.008333333333333207,
        -0.00019841269841212476,
        2.755731921156809e-06,
        -2.5052106904186435e-08,
        1.605894098425436e-10,
        -7.643018729782656e-13,
        2.7214108932260155e-15,
    ],
];

/// `sin(x)`.
pub(super) fn sin(x: Val<'_>) -> Val<'_> {
    let [sine] = sines(x, [0]);
    sine
}

/// `cos(x)`.
pub(super) fn cos(x: Val<'_>) -> Val<'_> {
    let [cosine] = sines(x, [1]);
    cosine
}

/// `sin(x)` and `cos(x)`.
pub(super) fn sin_cos(x: Val<'_>) -> [Val<'_>; 2] {
    sines(x, [0, 1])
}

/// The sines of an angle with so many quarter turns added, each none or one.
///
/// In `f32` there are both polynomials, of the sine and of the cosine up to pi / 4, of which one is taken. Those of `f64`
/// are long, and one of the sine up to pi / 2 takes less time than two that are shorter.
fn sines<const N: usize>(x: Val<'_>, quarters: [i64; N]) -> [Val<'_>; N] {
    if Format::of(x).is_double() {
        return reduced_by_pi(x, quarters).map(|(r, n)| sine_of_quarter(r, n));
    }
    let angle = Angle::of(x);
    quarters.map(|quarters| angle.turned(quarters))
}

/// The sine of `r` and `n` half turns, for `|r|` up to pi / 2.
fn sine_of_quarter<'k>(r: Val<'k>, n: Val<'k>) -> Val<'k> {
    let format = Format::of(r);
    let one = format.float(1.0);
    let z = r * r;
    let sine = format.polynomial(z, SIN_OF_QUARTER).mul_add(cube(z, r), r);
    // Near 1 the roundings may add up to more.
    let bounded = sine.abs().gt(one).select(one.copysign(sine), sine);
    format.with_bits(format.bits(bounded) ^ (n << format.integer(format.width() - 1)))
}

/// `z * r` for `z = r * r`, of zeros 0: the sign of -0 would be lost in `c * -0 - 0` for a negative `c`.
fn cube<'k>(z: Val<'k>, r: Val<'k>) -> Val<'k> {
    z.mul_add(r, Format::of(r).float(0.0))
}

/// For each number of quarter turns, none or one, that are added to an angle: the sum less a multiple of pi, at most pi / 2
/// in magnitude, and the multiple.
fn reduced_by_pi<const N: usize>(x: Val<'_>, quarters: [i64; N]) -> [(Val<'_>, Val<'_>); N] {
    let format = Format::of(x);
    let k = format.builder();
    let pi = HALF_PI.map(|part| format.constant(part.map(|c| 2.0 * c)));
    let near = quarters.map(|quarters| {
        let per_pi = format.constant(FRAC_1_PI);
        let half = format.float(0.5);
        let (j, n) = match quarters {
            0 => format.rounded_product(x, per_pi),
            // The angle itself is near a multiple and a half of pi: the sum with a quarter turn would be rounded.
            _ => {
                let turns = x.mul_add(per_pi, -half);
                let (j, n) = format.rounded_product(turns, format.float(1.0));
                (sum(j, half), n + format.integer(1))
            }
        };
        let r = pi.iter().fold(x, |rest, &part| j.mul_add(-part, rest));
        (k.var("r", r), k.var("n", n))
    });
    k.if_(x.abs().gt(format.constant(LARGE)), || {
        let large = k.intrinsic(&LARGE_ANGLE, &[x]);
        let (angle, quadrant) = (large.field("0"), large.field("2").cast(format.int));
        for ((r, n), quarters) in near.iter().zip(quarters) {
            let quadrant = quadrant + format.integer(quarters);
            let odd = (quadrant & format.integer(1)).ne(format.integer(0));
            // The sine of a quarter turn and an angle is that of a quarter turn less the angle's magnitude.
            let rest = difference(format.float(HALF_PI_LOW), angle.abs());
            let turned = sum(format.constant(HALF_PI[0]), rest);
            r.set(odd.select(turned, angle));
            n.set(quadrant >> format.integer(1));
        }
    });
    near.map(|(r, n)| (r.get(), n.get()))
}

/// (tan(r) / r - 1) / r^2 as a polynomial in r^2, for |r| up to pi / 4: 2^-29 and 2^-56 of tan.
const TAN: Coefficients = [
    &[
        0.3333335,
        0.13332677,
        0.054058682,
        0.021287551,
        0.010823743,
        0.00010311719,
        0.0043702293,
    ],
    &[
        0.33333333333333376,
        0.1333333333332581,
        0.05396825397264577,
        0.02186948840642368,
        0.008863237806379983,
        0.003592102103194998,
        0.0014560367927171415,
        0.0005889085644506494,
        0.00024359351550940397,
        8.396366860255874e-05,
        6.648190831468298e-05,
        -2.4694081808140402e-05,
        4.7848364176415654e-05,
        -2.3882317182550254e-05,
        9.711566231330807e-06,
    ],
];

/// `tan(x)`, by the tangent `t` of what is left of the angle in two parts: of an odd number of quarter turns more it is
/// `-1 / t`.
pub(super) fn tan(x: Val<'_>) -> Val<'_> {
    let format = Format::of(x);
    let (Pair { high: r, low }, quadrant) = reduced_precisely(x);
    let z = r * r;
    let (polynomial, cube) = (format.polynomial(z, TAN), z * r);
    let near = polynomial.mul_add(cube, r);
    // The derivative is 1 + t^2.
    let low = (near * low).mul_add(near, low);
    let t = exact_sum(r, polynomial.mul_add(cube, low));
    let inverse = format.float(-1.0) / t.high;
    let rest = inverse.mul_add(t.high, format.float(1.0));
    let inverse = inverse.mul_add(inverse.mul_add(t.low, rest), inverse);
    let odd = (quadrant & format.integer(1)).ne(format.integer(0));
    let zero = x.eq(format.float(0.0));
    zero.select(x, odd.select(inverse, t.high))
}

/// The argument less a multiple of pi / 2 in two parts, and the multiple modulo 4.
fn reduced_precisely(x: Val<'_>) -> (Pair<'_>, Val<'_>) {
    let format = Format::of(x);
    let k = format.builder();
    let (j, n) = format.rounded_product(x, format.constant(TWO_OVER_PI));
    let [first, second, third] = HALF_PI.map(|part| format.constant(part));
    let near = j.mul_add(-first, x);
    let product = exact_product(j, second);
    let left = exact_sum_of_any(near, -product.high);
    let rest = j.mul_add(-third, difference(left.low, product.low));
    let (r, low, quadrant) = (
        k.var("r", left.high),
        k.var("low", rest),
        k.var("quadrant", n),
    );
    k.if_(x.abs().gt(format.constant(LARGE)), || {
        let large = k.intrinsic(&LARGE_ANGLE, &[x]);
        r.set(large.field("0"));
        low.set(large.field("1"));
        quadrant.set(large.field("2").cast(format.int));
    });
    let left = Pair {
        high: r.get(),
        low: low.get(),
    };
    (left, quadrant.get())
}

/// pi in two parts.
const PI: [Constant; 2] = [
    [std::f32::consts::PI as f64, std::f64::consts::PI],
    [-8.74227766e-08, 1.2246467991473532e-16],
];

/// `sin(pi x)` (C23, 7.12.4.13).
pub(super) fn sin_pi(x: Val<'_>) -> Val<'_> {
    let zero = Format::of(x).float(0.0);
    let result = Angle::of_half_turns(x).turned(0);
    // Of integers it is 0 with their sign.
    result.eq(zero).select(zero.copysign(x), result)
}

/// `cos(pi x)` (C23, 7.12.4.12).
pub(super) fn cos_pi(x: Val<'_>) -> Val<'_> {
    let zero = Format::of(x).float(0.0);
    let result = Angle::of_half_turns(x).turned(1);
    result.eq(zero).select(zero, result)
}

/// An argument after its reduction.
struct Angle<'k> {
    /// The sine and the cosine of what is left of it.
    sine: Val<'k>,
    cosine: Val<'k>,
    /// How many times pi / 2 was taken away, modulo 4.
    quadrant: Val<'k>,
}

impl<'k> Angle<'k> {
    fn of(x: Val<'k>) -> Angle<'k> {
        let format = Format::of(x);
        let (r, quadrant) = reduced(x);
        let z = r * r;
        let cosine = format.polynomial(z, COS).mul_add(z, format.float(-0.5));
        Angle {
            sine: format.polynomial(z, SIN).mul_add(cube(z, r), r),
            cosine: cosine.mul_add(z, format.float(1.0)),
            quadrant,
        }
    }

    /// An angle in half turns, whose reduction is exact.
    fn of_half_turns(x: Val<'k>) -> Angle<'k> {
        let format = Format::of(x);
        let turns = (x * format.float(0.5)).round_ties_even();
        let rest = turns.mul_add(format.float(-2.0), x);
        let quadrant = (rest * format.float(2.0)).round_ties_even();
        let rest = quadrant.mul_add(format.float(-0.5), rest);
        let [pi, pi_low] = PI.map(|part| format.constant(part));
        let r = exact_product(rest, pi);
        let low = rest.mul_add(pi_low, r.low);
        let z = r.high * r.high;
        let sine = format.polynomial(z, SIN).mul_add(z * r.high, low);
        let cosine = format.polynomial(z, COS).mul_add(z, format.float(-0.5));
        let cosine = cosine.mul_add(z, r.high * -low);
        Angle {
            sine: sum(r.high, sine),
            cosine: sum(format.float(1.0), cosine),
            quadrant: quadrant.cast(format.int),
        }
    }

    /// The sine of the argument with so many times pi / 2 added.
    fn turned(&self, quadrants: i64) -> Val<'k> {
        let format = Format::of(self.sine);
        let quadrant = self.quadrant + format.integer(quadrants);
        let odd = (quadrant & format.integer(1)).ne(format.integer(0));
        let value = format.bits(odd.select(self.cosine, self.sine));
        let sign = quadrant << format.integer(format.width() - 2);
        format.with_bits(value ^ (sign & format.integer(format.sign_bit())))
    }
}

/// The argument less a multiple of pi / 2, at most pi / 4 in magnitude, and the multiple modulo 4.
fn reduced(x: Val<'_>) -> (Val<'_>, Val<'_>) {
    let format = Format::of(x);
    let k = format.builder();
    let (j, n) = format.rounded_product(x, format.constant(TWO_OVER_PI));
    let near = HALF_PI
        .iter()
        .fold(x, |rest, &part| j.mul_add(-format.constant(part), rest));
    let (r, quadrant) = (k.var("r", near), k.var("quadrant", n));
    k.if_(x.abs().gt(format.constant(LARGE)), || {
        let large = k.intrinsic(&LARGE_ANGLE, &[x]);
        r.set(large.field("0"));
        quadrant.set(large.field("2").cast(format.int));
    });
    (r.get(), quadrant.get())
}

/// What [`reduced_precisely`] gives of a large argument.
pub(super) static LARGE_ANGLE: IntrinsicDef = IntrinsicDef::new(
    "math.large_angle",
    &[TypePattern::FLOAT],
    TypePattern::Tuple(&[
        TypePattern::Chosen,
        TypePattern::Chosen,
        TypePattern::Exact(Scalar::I32),
    ]),
    Meaning::Body(large_angle),
)
.with_cells(&[
    Cell::ptx(Family::PTX, Some(Scalar::F32), &LARGE_ANGLE_F32),
    Cell::ptx(Family::PTX, Some(Scalar::F64), &LARGE_ANGLE_F64),
]);

/// What LLVM makes of the body, so that it need not for each kernel with a sine; `tests/ptx_functions.rs` sees to that.
static LARGE_ANGLE_F32: PtxFunction = PtxFunction {
    name: "kiln_large_angle_f32",
    text: include_str!("large_angle_f32.ptx"),
};
/// As [`LARGE_ANGLE_F32`].
static LARGE_ANGLE_F64: PtxFunction = PtxFunction {
    name: "kiln_large_angle_f64",
    text: include_str!("large_angle_f64.ptx"),
};

fn large_angle(scalar: Scalar) -> Option<Module> {
    let function = DeviceFn::build(&format!("math.large_angle.{}", scalar.name()), |k| {
        k.inline(Inline::Never);
        let x = k.param("x", Type::scalar(scalar));
        let (Pair { high, low }, quadrant) = reduce_large(x);
        let parts = [("0", high.ty()), ("1", low.ty()), ("2", Type::I32)];
        let ty = k.struct_type("tuple", &parts);
        k.return_value(k.construct(ty, &[high, low, quadrant.cast(Type::I32)]));
    });
    function.ok().map(|f| f.module())
}

/// The first 1248 bits of 2 / pi after the binary point, after 32 zero bits.
const TWO_OVER_PI_BITS: [u32; 40] = [
    0,
    0xa2f9_836e,
    0x4e44_1529,
    0xfc27_57d1,
    0xf534_ddc0,
    0xdb62_9599,
    0x3c43_9041,
    0xfe51_63ab,
    0xdebb_c561,
    0xb724_6e3a,
    0x424d_d2e0,
    0x0649_2eea,
    0x09d1_921c,
    0xfe1d_eb1c,
    0xb129_a73e,
    0xe882_35f5,
    0x2ebb_4484,
    0xe99c_7026,
    0xb45f_7e41,
    0x3991_d639,
    0x8353_39f4,
    0x9c84_5f8b,
    0xbdf9_283b,
    0x1ff8_97ff,
    0xde05_980f,
    0xef2f_118b,
    0x5a0a_6d1f,
    0x6d36_7ecf,
    0x27cb_09b7,
    0x4f46_3f66,
    0x9e5f_ea2d,
    0x7527_bac7,
    0xebe5_f17b,
    0x3d07_39f7,
    0x8a52_92ea,
    0x6bfb_5fb1,
    0x1f8d_5d08,
    0x5603_3046,
    0xfc7b_6bab,
    0xf0cf_bc20,
];

/// From each limb on 64 bits of them.
const TWO_OVER_PI_WORDS: [u64; TWO_OVER_PI_BITS.len() - 1] = {
    let mut words = [0; TWO_OVER_PI_BITS.len() - 1];
    let mut at = 0;
    while at < words.len() {
        words[at] = (TWO_OVER_PI_BITS[at] as u64) << 32 | TWO_OVER_PI_BITS[at + 1] as u64;
        at += 1;
    }
    words
};

/// Reduces an argument of any size (Payne and Hanek, "Radian reduction for trigonometric
/// functions", 1983): of the product of its significand with 2 / pi only the bits worth less than
/// 4 are computed. LLVM takes as long as there are operations, and they are in every kernel with a sine.
fn reduce_large(x: Val<'_>) -> (Pair<'_>, Val<'_>) {
    let format = Format::of(x);
    let bits = format.bits(x);
    let magnitude = bits & format.integer(!format.sign_bit());

    // |x| is `significand * 2^exponent`.
    let exponent = magnitude >> format.integer(format.digits);
    let exponent = exponent - format.integer(format.bias + format.digits);
    let implicit = 1i64 << format.digits;
    let significand = (magnitude & format.integer(implicit - 1)) | format.integer(implicit);

    // Bits worth 4 or more times the significand come before this one; 32 zeros are in front.
    let start = (exponent + format.integer(30)).cast(Type::U32);
    let (high, rest) = low_bits_of_product(format, significand.cast(Type::U64), start);
    // The nearest multiple of a quarter turn, and how far from it, as a signed fraction of one.
    let fraction = ((high << 2u32) | (rest >> 62u32)).cast(Type::I64);
    let turn = (high >> 62u32) + (fraction.cast(Type::U64) >> 63u32);
    let angle = angle_of(format, fraction, rest << 2u32);
    let negative = x.lt(format.float(0.0));
    let [high, low] = [angle.high, angle.low].map(|part| negative.select(-part, part));
    let infinite = x.abs().eq(format.infinity());
    let high = infinite.select(format.nan(), high);
    let turn = turn.cast(format.int);
    (Pair { high, low }, negative.select(-turn, turn))
}

/// The product of a significand with 96 bits of 2 / pi, for `f64` with 192 bits, from bit `start` on, less what is beyond
/// them: its first 128 bits.
fn low_bits_of_product<'k>(
    format: Format<'k>,
    significand: Val<'k>,
    start: Val<'k>,
) -> (Val<'k>, Val<'k>) {
    let k = format.builder();
    let (limb, shift) = ((start >> 5u32) & 31u32, (start & 31u32).cast(Type::U64));
    let table = k.constant_array("two_over_pi", &TWO_OVER_PI_WORDS);
    let word = |i: u32| table.at(limb + 2 * i).get();
    // 64 bits, and the 32 behind them, that begin in a word.
    let window =
        |word: Val<'k>, next: Val<'k>| (word << shift) | (((next >> 32u32) << shift) >> 32u32);
    let last = |word: Val<'k>| (word << shift) >> 32u32;
    let (first, second) = (word(0), word(1));
    if !format.is_double() {
        let below = last(second) * significand;
        let high = window(first, second) * significand + (below >> 32u32);
        return (high, below << 32u32);
    }
    let (third, fourth) = (word(2), word(3));
    let middle = window(second, third);
    let below = k.mul_hi(window(third, fourth), significand);
    let rest = middle * significand + below;
    let carry = rest
        .lt(below)
        .select(k.lit(Type::U64, 1), k.lit(Type::U64, 0));
    let high = window(first, second) * significand + k.mul_hi(middle, significand) + carry;
    (high, rest)
}

/// `fraction * 2^-64 + rest * 2^-128` quarter turns in radians.
fn angle_of<'k>(format: Format<'k>, fraction: Val<'k>, rest: Val<'k>) -> Pair<'k> {
    let k = format.builder();
    let double = |value: f64| k.lit(Type::F64, value);
    let unit = double((-64.0f64).exp2());
    let rounded = fraction.cast(Type::F64);
    let high = rounded * unit;
    if !format.is_double() {
        let angle = high * double(std::f64::consts::FRAC_PI_2);
        let high = angle.cast(format.ty);
        let low = difference(angle, high.cast(Type::F64)).cast(format.ty);
        return Pair { high, low };
    }
    let left = (fraction - rounded.cast(Type::I64)).cast(Type::F64);
    let low = rest.cast(Type::F64).mul_add(unit, left) * unit;
    let angle = exact_product(high, double(HALF_PI[0][1]));
    let error = high.mul_add(double(HALF_PI_LOW), angle.low);
    exact_sum(angle.high, low.mul_add(double(HALF_PI[0][1]), error))
}
