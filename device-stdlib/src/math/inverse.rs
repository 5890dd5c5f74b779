//! The inverses of tangent, sine and cosine.

use kiln_jit_core::build::Val;

use super::Math as _;
use super::format::{Coefficients, Constant, Format, Pair, exact_sum, sum};
use crate::number::Signed as _;

/// pi / 2 in two parts.
const HALF_PI: [Constant; 2] = [
    [
        std::f32::consts::FRAC_PI_2 as f64,
        std::f64::consts::FRAC_PI_2,
    ],
    [-4.37113883e-08, 6.123233995736766e-17],
];

/// (atan(a) / a - 1) / a^2 as a polynomial in a^2, for a up to 1: 2^-28 and 2^-57 of atan.
const ATAN: Coefficients = [
    &[
        -0.333332986,
        0.199985489,
        -0.142642438,
        0.109521925,
        -0.0840346739,
        0.0579578541,
        -0.0311780814,
        0.0109147206,
        -0.00179364544,
    ],
    &[
        -0.3333333333333307,
        0.19999999999951454,
        -0.14285714282574818,
        0.11111111007018756,
        -0.09090907002881693,
        0.07692279838232424,
        -0.06666404050458552,
        0.05880527780161066,
        -0.0525351842985575,
        0.04722321888606603,
        -0.04219178299697969,
        0.03664190119129879,
        -0.02990384815699419,
        0.02198484620641441,
        -0.013900558072089675,
        0.0071965047835401506,
        -0.0028849206965058734,
        0.0008313230965075009,
        -0.00015216122641271445,
        1.3225120005382104e-05,
    ],
];

/// (asin(a) / a - 1) / a^2 as a polynomial in a^2, for a up to 1 / 2: 2^-27 and 2^-59 of asin.
const ASIN: Coefficients = [
    &[
        0.166667521,
        0.0749529749,
        0.0454703756,
        0.0241795015,
        0.0421663374,
    ],
    &[
        0.1666666666666676,
        0.07499999999970801,
        0.04464285717461033,
        0.03038194270786485,
        0.02237221498521466,
        0.017351612059317012,
        0.013980819982458302,
        0.011398916930284555,
        0.010780226263625698,
        0.0037065087611326012,
        0.021707204848783565,
        -0.020998721536761144,
        0.03262841163658667,
    ],
];

/// `atan(x)`: a polynomial up to 1, pi / 2 less that of the reciprocal beyond.
pub(super) fn atan(x: Val<'_>) -> Val<'_> {
    let format = Format::of(x);
    let (a, one) = (x.abs(), format.float(1.0));
    let is_large = a.gt(one);
    let small = atan_to_one(is_large.select(one / a, a));
    let large = turned(format, HALF_PI, -small);
    with_sign(is_large.select(large, small), x)
}

/// `atan2(y, x)`: the angle of the point (x, y), with the special values of C.
///
/// The smaller coordinate by the larger is at most 1, and which eighth of the circle the point is in says what is
/// added to the angle of that.
pub(super) fn atan2<'k>(y: Val<'k>, x: Val<'k>) -> Val<'k> {
    let format = Format::of(x);
    let zero = format.float(0.0);
    let (across, along) = (x.abs(), y.abs());
    let is_steep = along.gt(across);
    let (short, long) = (
        is_steep.select(across, along),
        is_steep.select(along, across),
    );
    // Two zeros and two infinities have no quotient: the angle is 0 and pi / 4.
    let quotient = short.eq(long).select(format.float(1.0), short / long);
    let angle = atan_to_one(long.eq(zero).select(zero, quotient));
    let is_left = format.bits(x).lt(format.integer(0));
    let upright = turned(format, HALF_PI, is_left.select(angle, -angle));
    let leftward = turned(format, HALF_PI.map(|part| part.map(|c| 2.0 * c)), -angle);
    let flat = is_left.select(leftward, angle);
    let magnitude = is_steep.select(upright, flat);
    let is_number = x.eq(x) & y.eq(y);
    with_sign(is_number.select(magnitude, format.nan()), y)
}

/// `asin(x)`: a polynomial up to 1 / 2, by asin(a) = pi / 2 - 2 asin(sqrt((1 - a) / 2)) beyond; NaN beyond 1.
pub(super) fn asin(x: Val<'_>) -> Val<'_> {
    let Halved {
        is_large,
        root,
        tail,
    } = halved(x);
    let format = Format::of(x);
    let small = sum(root, tail);
    let minus_two = format.float(-2.0);
    let large = turned_precisely(format, HALF_PI, root * minus_two, tail * minus_two);
    with_sign(is_large.select(large, small), x)
}

/// `acos(x)`: pi / 2 - asin(x) up to 1 / 2, 2 asin(sqrt((1 - x) / 2)) beyond; NaN beyond 1.
pub(super) fn acos(x: Val<'_>) -> Val<'_> {
    let Halved {
        is_large,
        root,
        tail,
    } = halved(x);
    let format = Format::of(x);
    let is_left = x.lt(format.float(0.0));
    let [by, rest] = [root, tail].map(|part| is_left.select(part, -part));
    let upright = turned_precisely(format, HALF_PI, by, rest);
    let two = format.float(2.0);
    let (root, tail) = (root * two, tail * two);
    let pi = HALF_PI.map(|part| part.map(|c| 2.0 * c));
    let left = turned_precisely(format, pi, -root, -tail);
    let large = is_left.select(left, sum(root, tail));
    is_large.select(large, upright)
}

/// What the arc sine is computed of.
struct Halved<'k> {
    /// Whether |x| is beyond 1 / 2.
    is_large: Val<'k>,
    /// |x|, or of a large one the root of (1 - |x|) / 2, which is at most 1 / 2, too.
    root: Val<'k>,
    /// What the arc sine of the root is more than the root.
    tail: Val<'k>,
}

fn halved(x: Val<'_>) -> Halved<'_> {
    let format = Format::of(x);
    let (a, half) = (x.abs(), format.float(0.5));
    let is_large = a.gt(half);
    let square = is_large.select(a.mul_add(-half, half), a * a);
    let root = is_large.select(square.sqrt(), a);
    let tail = format.polynomial(square, ASIN) * square * root;
    Halved {
        is_large,
        root,
        tail,
    }
}

/// `atan(a)` for `a` from 0 to 1.
fn atan_to_one(a: Val<'_>) -> Val<'_> {
    let z = a * a;
    (Format::of(a).polynomial(z, ATAN) * z).mul_add(a, a)
}

/// An angle in two parts and another, which is smaller.
fn turned<'k>(format: Format<'k>, angle: [Constant; 2], by: Val<'k>) -> Val<'k> {
    let [high, low] = angle.map(|part| format.constant(part));
    sum(high, sum(low, by))
}

/// An angle in two parts and another, which is smaller and in two parts, too.
fn turned_precisely<'k>(
    format: Format<'k>,
    angle: [Constant; 2],
    by: Val<'k>,
    tail: Val<'k>,
) -> Val<'k> {
    let [high, low] = angle.map(|part| format.constant(part));
    let Pair { high, low: rest } = exact_sum(high, by);
    sum(high, sum(sum(low, rest), tail))
}

/// A magnitude with the sign of another number.
fn with_sign<'k>(magnitude: Val<'k>, sign: Val<'k>) -> Val<'k> {
    let format = Format::of(magnitude);
    let sign = format.bits(sign) & format.integer(format.sign_bit());
    format.with_bits(format.bits(magnitude) | sign)
}
