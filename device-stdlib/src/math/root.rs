//! Reciprocals of square roots, cube roots, the length of a vector.

use kiln_jit_core::build::Val;
use kiln_jit_core::ir::Type;

use super::Math as _;
use super::format::{
    Coefficients, Constant, Format, Pair, difference, exact_product, exact_sum, sum,
};
use super::hyperbolic::precise_sqrt;
use crate::number::Signed as _;

/// `((1 - e)^(-1/2) - 1) / e` for `e` from -0.07 to 0.07: 2^-25.3 and 2^-19.8 of the root.
const NEAR_RECIPROCAL: Coefficients = [
    &[0.49999833, 0.37499902, 0.31393813, 0.27451596],
    &[0.4999992110814985, 0.3760663475403518, 0.3136521116124899],
];
/// `1 / sqrt(x)`: from the bits of a first guess (Blinn, "Floating-point tricks", 1997), which is off by a thirtieth at most,
/// by a polynomial in what `x` times its square lacks of 1; of `f64` once more, by the series. No step divides, and none has
/// an instruction whose bits are the device's.
///
/// What is far from a number whose root the guess is near to shows in what lacks: numbers below the normal ones, zeros,
/// infinities, negative numbers, NaN.
pub(super) fn rsqrt(x: Val<'_>) -> Val<'_> {
    let format = Format::of(x);
    let (k, one) = (format.builder(), format.float(1.0));
    let (first, rest) = first_reciprocal(x);
    let correction = format.polynomial(rest, NEAR_RECIPROCAL);
    let mut near = (first * rest).mul_add(correction, first);
    if format.is_double() {
        let rest = (-(x * near)).mul_add(near, one);
        let correction = rest.mul_add(format.float(0.375), format.float(0.5));
        near = (near * rest).mul_add(correction, near);
    }
    let root = k.var("root", near);
    k.if_(!is_small(rest), || root.set(one / x.sqrt()));
    root.get()
}

/// Whether a number is what [`NEAR_RECIPROCAL`] is for. Of `f64` the upper bits say so, as GPUs take longer to compare all.
fn is_small(rest: Val<'_>) -> Val<'_> {
    let format = Format::of(rest);
    if format.is_double() {
        let upper = (format.unsigned_bits(rest) >> 32u64).cast(Type::U32);
        (upper & 0x7fff_ffffu32).le(0x3fb1_eb85u32)
    } else {
        rest.abs().le(format.float(0.07))
    }
}

/// A first guess of `1 / sqrt(x)`, and what `x` times its square lacks of 1.
fn first_reciprocal(x: Val<'_>) -> (Val<'_>, Val<'_>) {
    let (format, one) = (Format::of(x), Format::of(x).float(1.0));
    if format.is_double() {
        // Of 21 digits, so that its square is exact.
        let half = format.bits(x) >> format.integer(33);
        let first = (format.integer(0x5fe6_ea00) - half) << format.integer(32);
        let first = format.with_bits(first);
        (first, (-x).mul_add(first * first, one))
    } else {
        let half = format.bits(x) >> format.integer(1);
        let first = format.with_bits(format.integer(0x5f37_5000) - half);
        (first, (-(x * first)).mul_add(first, one))
    }
}

/// The cube root from 1 to 8: 1/190 of it.
const NEAR_ROOT: [f64; 4] = [
    0.6816784469208317,
    0.36453292067603843,
    -0.043310930269398286,
    0.002313252156014303,
];
const CUBE_ROOT: Coefficients = [&NEAR_ROOT, &NEAR_ROOT];

/// `cbrt(x)`: of `m * 2^(3 k)`, `m` from 1 to 8, by a polynomial, Halley's method, which trebles the digits, and a step
/// of Newton's with an exact remainder.
pub(super) fn cbrt(x: Val<'_>) -> Val<'_> {
    let format = Format::of(x);
    let a = x.abs();
    // Numbers below the normal ones have no exponent of their own.
    let thirds = (format.digits + 3) / 3;
    let tiny = a.lt(format.float((1.0 - format.bias as f64).exp2()));
    let normal = tiny.select(a * format.float((3.0 * thirds as f64).exp2()), a);
    let lowered = tiny.select(format.integer(thirds), format.integer(0));
    let bits = format.bits(normal);
    let exponent = (bits >> format.integer(format.digits)) - format.integer(format.bias);
    let third = floor_of_third(format, exponent);
    let whole = (third * format.integer(3)) << format.integer(format.digits);
    let m = format.with_bits(bits - whole);
    let (mut root, two) = (format.polynomial(m, CUBE_ROOT), format.float(2.0));
    for _ in 0..if format.is_double() { 2 } else { 1 } {
        let cube = root * root * root;
        root = root * (two.mul_add(m, cube) / two.mul_add(cube, m));
    }
    let square = exact_product(root, root);
    let rest = square.low.mul_add(root, square.high.mul_add(root, -m));
    let root = difference(root, rest / (square.high * format.float(3.0)));
    let result = root * format.power_of_two(third - lowered);
    let is_number = a.gt(format.float(0.0)) & a.lt(format.infinity());
    is_number.select(result.copysign(x), x)
}

/// A third of an exponent, rounded down: 43691 is a third of 2^17, and the exponent is above -3072.
fn floor_of_third<'k>(format: Format<'k>, exponent: Val<'k>) -> Val<'k> {
    let int = |n: i64| format.integer(n);
    (((exponent + int(3072)) * int(43_691)) >> int(17)) - int(1024)
}

/// Above the first, squares may overflow; below the second, they lose digits.
const LARGE: Constant = [1.152921504606847e18, 3.273390607896142e150];
const SMALL: Constant = [9.094947017729282e-13, 3.4395525670743494e-136];

/// `hypot(x, y)` (C23, 7.12.7.4): the root of the sum of two squares, each in two parts.
pub(super) fn hypot<'k>(x: Val<'k>, y: Val<'k>) -> Val<'k> {
    let format = Format::of(x);
    let (across, along) = (x.abs(), y.abs());
    let (long, short) = (across.max(along), across.min(along));
    let (is_large, is_small) = (
        long.gt(format.constant(LARGE)),
        long.lt(format.constant(SMALL)),
    );
    let power = |by: f64| format.constant([(by * 90.0).exp2(), (by * 600.0).exp2()]);
    let one = format.float(1.0);
    let scale = is_large.select(power(-1.0), is_small.select(power(1.0), one));
    let back = is_large.select(power(1.0), is_small.select(power(-1.0), one));
    let [long, short] = [long, short].map(|side| {
        let side = side * scale;
        exact_product(side, side)
    });
    let square = exact_sum(long.high, short.high);
    let root = precise_sqrt(Pair {
        high: square.high,
        low: sum(square.low, sum(long.low, short.low)),
    });
    let zero = format.float(0.0);
    let low = square.high.gt(zero).select(root.low, zero);
    let length = sum(root.high, low) * back;
    let infinity = format.infinity();
    let is_infinite = across.eq(infinity) | along.eq(infinity);
    let length = (x.ne(x) | y.ne(y)).select(format.nan(), length);
    is_infinite.select(infinity, length)
}

/// `1 / hypot(x, y)`, of numbers whose length is neither infinite nor below the normal ones.
pub(super) fn rhypot<'k>(x: Val<'k>, y: Val<'k>) -> Val<'k> {
    let format = Format::of(x);
    let one = format.float(1.0);
    let long = x.abs().max(y.abs());
    let raised = format.constant([60f64.exp2(), 450f64.exp2()]);
    let scale = long.lt(format.constant(SMALL)).select(raised, one);
    let scale = long.gt(one).select(format.float(0.5), scale);
    scale / hypot(x * scale, y * scale)
}
