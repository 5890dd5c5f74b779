//! Quotients of integers, their remainders, and halves of sums.

use kiln_jit_core::build::Val;

use super::is_signed;

/// The remainder that is never negative.
#[track_caller]
pub(crate) fn rem_euclid<'k>(x: Val<'k>, by: Val<'k>) -> Val<'k> {
    let rest = x % by;
    if !is_signed(x.ty()) {
        return rest;
    }
    let zero = x.builder().zero(x.ty());
    let size = by.lt(zero).select(-by, by);
    rest.lt(zero).select(rest + size, rest)
}

/// The quotient that leaves this remainder.
#[track_caller]
pub(crate) fn div_euclid<'k>(x: Val<'k>, by: Val<'k>) -> Val<'k> {
    let quotient = x / by;
    if !is_signed(x.ty()) {
        return quotient;
    }
    let (zero, one) = (x.builder().zero(x.ty()), x.builder().lit(x.ty(), 1));
    let rounded = zero.lt(by).select(quotient - one, quotient + one);
    (x % by).lt(zero).select(rounded, quotient)
}

/// Half of the sum, towards zero.
///
/// What both have and half of what one has is half of the sum, rounded down (Dietz).
#[track_caller]
pub(crate) fn midpoint<'k>(x: Val<'k>, y: Val<'k>) -> Val<'k> {
    let differing = x ^ y;
    let down = (x & y) + (differing >> 1u32);
    if !is_signed(x.ty()) {
        return down;
    }
    let zero = x.builder().zero(x.ty());
    let one = x.builder().lit(x.ty(), 1);
    down + down.lt(zero).select(differing & one, zero)
}
