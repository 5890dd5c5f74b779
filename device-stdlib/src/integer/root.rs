//! Square roots and logarithms of integers, rounded down.

use kiln_jit_core::build::{IntoVal, Val};
use kiln_jit_core::ir::Type;

use super::bits::Bits;
use super::unsigned;
use crate::math::Math as _;

/// An integer as an unsigned one of 32 or 64 bits.
#[track_caller]
fn word(x: Val<'_>) -> Val<'_> {
    let is_long = x.ty().as_scalar().is_some_and(|scalar| scalar.bits() == 64);
    let ty = if is_long { Type::U64 } else { Type::U32 };
    x.cast(unsigned(x.ty())).cast(ty)
}

/// The square root, rounded down.
///
/// The float next to the number has a root that is off by less than 1, so its integer is the right one, or beside it.
#[track_caller]
pub(super) fn isqrt(x: Val<'_>) -> Val<'_> {
    let b = x.builder();
    let number = word(x);
    let (float, most) = match number.ty() {
        Type::U64 => (Type::F64, u64::from(u32::MAX)),
        _ => (Type::F32, u64::from(u16::MAX)),
    };
    let lit = |n: u64| b.lit(number.ty(), n);
    let near = number.cast(float).sqrt().cast(number.ty()).min(lit(most));
    let above = (near * near).gt(number);
    let root = above.select(near - lit(1), near);
    // (root + 1)^2 is not above the number.
    let below = (number - root * root).gt(root << 1u32);
    below.select(root + lit(1), root).cast(x.ty())
}

/// The logarithm to base 2, rounded down: where the highest one is.
#[track_caller]
pub(super) fn ilog2(x: Val<'_>) -> Val<'_> {
    let width = x.ty().as_scalar().map_or(32, |scalar| scalar.bits());
    let zeros = Bits::count(x, Bits::zeros_above);
    x.builder().lit(Type::U32, width - 1) - zeros
}

/// The logarithm to base 10, rounded down.
#[track_caller]
pub(super) fn ilog10(x: Val<'_>) -> Val<'_> {
    let b = x.builder();
    let mut number = word(x);
    let mut log = b.lit(Type::U32, 0);
    let width = x.ty().as_scalar().map_or(32, |scalar| scalar.bits());
    let steps: &[(u64, u32)] = match width {
        64 => &[(10_000_000_000, 10), (100_000, 5)],
        32 => &[(100_000, 5)],
        _ => &[],
    };
    for &(power, digits) in steps {
        let power = b.lit(number.ty(), power);
        let large = number.ge(power);
        number = large.select(number / power, number);
        log = log + large.select(b.lit(Type::U32, digits), b.lit(Type::U32, 0));
    }
    log + of_five_digits(number.cast(Type::U32))
}

/// The logarithm of a number below 100,000. Each sum carries into bit 17 or 18 where the number is not below a power of 10;
/// of two sums the bits that both have, and of these pairs those that one has, count the powers (from Rust's `ilog10`).
#[track_caller]
fn of_five_digits(number: Val<'_>) -> Val<'_> {
    let [one, two, three, four] = [
        (3 << 17) - 10,
        (4 << 17) - 100,
        (7 << 17) - 1000,
        (4 << 17) - 10_000,
    ]
    .map(|constant: u32| number + number.builder().lit(Type::U32, constant));
    ((one & two) ^ (three & four)) >> 17u32
}

/// The logarithm to a base, rounded down: how often the base divides.
#[track_caller]
pub(super) fn ilog<'k>(x: Val<'k>, base: Val<'k>) -> Val<'k> {
    let b = x.builder();
    let base = base.max(b.lit(x.ty(), 2));
    let (log, rest) = (b.var("log", b.lit(Type::U32, 0)), b.var("rest", x));
    b.while_(
        || rest.get().ge(base),
        || {
            rest.set(rest.get() / base);
            log.set(log.get() + 1);
        },
    );
    log.get()
}

/// The least power of 2 that is not below an unsigned number, modulo 2 to the width.
#[track_caller]
pub(super) fn next_power_of_two(x: Val<'_>) -> Val<'_> {
    let one = x.builder().lit(x.ty(), 1);
    let below = x - one;
    let zeros = Bits::count(below, Bits::zeros_above);
    let all = !x.builder().zero(x.ty());
    let next = (all >> zeros.cast(x.ty())) + one;
    x.gt(one).select(next, one)
}

/// The least multiple that is not below an unsigned number, modulo 2 to the width; of 0 the number.
#[track_caller]
pub(super) fn next_multiple_of<'k>(x: Val<'k>, by: impl IntoVal<'k>) -> Val<'k> {
    let by = by.into_val(x.builder(), Some(x.ty()));
    let rest = x % by;
    let zero = x.builder().zero(x.ty());
    rest.eq(zero).select(x, x + (by - rest))
}
