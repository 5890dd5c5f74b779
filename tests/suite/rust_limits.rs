//! Methods of integers that tell whether a result fits, that put limits in its place, roots and logarithms: the host's
//! results for every width, at edges and at random bits.

use kiln::prelude::*;

use super::rust_integers::{case, samples};
use super::{Outcome, chapter};

chapter![
    limits_of_i8,
    limits_of_i16,
    limits_of_i32,
    limits_of_i64,
    limits_of_u8,
    limits_of_u16,
    limits_of_u32,
    limits_of_u64,
    roots_beside_squares,
    logarithms_beside_powers,
    what_rust_panics_for,
];

/// What integers of a type parameter have.
#[device_fn]
pub fn of_any<T: Int>(x: T, y: T) -> (T, u64) {
    let (sum, carries) = x.overflowing_add(y);
    let (difference, borrows) = T::overflowing_sub(x, y);
    let (negative, least) = y.overflowing_neg();
    let flags = carries as u64 + 2 * (borrows as u64) + 4 * (least as u64);
    (sum ^ difference.wrapping_mul(negative), flags)
}

/// A number and whether it overflows, as one.
#[device_fn]
pub fn both<T: Int>(pair: (T, bool)) -> u64 {
    pair.0.cast::<u64>().wrapping_mul(2) ^ (pair.1 as u64).wrapping_mul(0x8000_0001)
}

/// A number that may not be there, as one.
#[device_fn]
pub fn told<T: Int>(number: Option<T>) -> u64 {
    match number {
        Some(number) => number.cast::<u64>().wrapping_mul(4) ^ 1,
        None => 0x7777_7777,
    }
}

/// What is checked of any integers.
#[device_fn]
pub fn checked<T: Int>(x: T, y: T) -> u64 {
    let negative = told(x.checked_neg()).rotate_left(17);
    told(x.checked_add(y)) ^ told(x.checked_sub(y)).wrapping_mul(31) ^ negative
}

/// What signed and unsigned integers have in common, then what is said besides.
macro_rules! limits {
    ($($case:ident $t:ident $module:ident |$x:ident, $y:ident, $n:ident| $more:expr;)*) => {$(
        case!($case, $t, $module, |$x, $y, $n| {
            let positive = if $x & $t::MAX == 0 { 1 } else { $x & $t::MAX };
            let base = if $y & 63 < 2 { 10 } else { $y & 63 };
            let divisor = if $y == 0 { 7 } else { $y };
            let (mixed, flags) = super::of_any($x, $y);
            let bits = [
                mixed as u64,
                flags,
                super::both($x.overflowing_mul($y)),
                super::checked($x, $y),
                super::told($x.checked_mul($y)),
                super::told($x.checked_div($y)),
                super::told($x.checked_rem($y)),
                super::told($x.checked_div_euclid($y)),
                super::told($x.checked_rem_euclid($y)),
                super::told($t::checked_pow($x, $n & 15)),
                super::told($x.checked_shl($n)),
                super::told($x.checked_shr($n)),
                super::both($x.overflowing_pow($n & 15)),
                super::both($t::overflowing_shl($x, $n)),
                super::both($x.overflowing_shr($n)),
                $x.saturating_mul($y) as u64,
                $x.saturating_pow($n & 7) as u64,
                $x.saturating_div(divisor) as u64,
                $x.unbounded_shl($n) as u64,
                $x.unbounded_shr($n) as u64,
                $x.wrapping_div_euclid(divisor) as u64,
                $x.wrapping_rem_euclid(divisor) as u64,
                $x.midpoint($y) as u64,
                positive.isqrt() as u64,
                positive.ilog2() as u64,
                positive.ilog10() as u64,
                positive.ilog(base) as u64,
                $more,
            ];
            let mut sum = 0u64;
            for i in 0..bits.len() {
                sum = sum.wrapping_mul(0x0100_0000_01b3) ^ bits[i];
            }
            sum
        });
    )*};
}

macro_rules! signed {
    ($($case:ident $t:ident $unsigned:ident $module:ident)*) => {
        limits! {$(
            $case $t $module |x, y, n| {
                let other = y.cast_unsigned();
                let moved = x.wrapping_add_unsigned(other) as u64
                    ^ (x.wrapping_sub_unsigned(other) as u64).rotate_left(9)
                    ^ (x.saturating_add_unsigned(other) as u64).rotate_left(18)
                    ^ (x.saturating_sub_unsigned(other) as u64).rotate_left(27);
                let checked = super::told(x.checked_add_unsigned(other))
                    ^ super::told(x.checked_sub_unsigned(other)).rotate_left(9)
                    ^ super::told(x.checked_abs()).rotate_left(18);
                let moved = moved ^ checked.wrapping_mul(5);
                let sizes = x.saturating_neg() as u64 ^ (x.saturating_abs() as u64).rotate_left(8);
                let signs = x.is_negative() as u64 + 2 * (x.is_positive() as u64);
                (moved ^ sizes.rotate_left(3) ^ super::both(x.overflowing_abs())).wrapping_mul(31) + signs
            };
        )*}
    };
}
signed! {
    limits_of_i8 i8 u8 on_i8  limits_of_i16 i16 u16 on_i16
    limits_of_i32 i32 u32 on_i32  limits_of_i64 i64 u64 on_i64
}

macro_rules! unsigned {
    ($($case:ident $t:ident $module:ident)*) => {
        limits! {$(
            $case $t $module |x, y, n| {
                let other = y.cast_signed();
                let moved = x.wrapping_add_signed(other) as u64
                    ^ super::both(x.overflowing_add_signed(other)).rotate_left(9)
                    ^ (x.saturating_add_signed(other) as u64).rotate_left(18)
                    ^ super::told(x.checked_add_signed(other)).rotate_left(27);
                // Where the next one is beyond the type, Rust panics.
                let small = x >> 1;
                let by = if y == 0 { 1 } else { y & 63 | 1 };
                let near = small & !63;
                let next = small.next_power_of_two() as u64 ^ (near.next_multiple_of(by) as u64).rotate_left(7);
                (moved ^ next).wrapping_mul(31) + x.is_multiple_of(y) as u64 + 2 * (small.is_multiple_of(by) as u64)
            };
        )*}
    };
}
unsigned! {
    limits_of_u8 u8 on_u8  limits_of_u16 u16 on_u16  limits_of_u32 u32 on_u32  limits_of_u64 u64 on_u64
}

#[kernel]
fn roots(x: &[u32], wide: &[u64], out: &mut [u32], of_wide: &mut [u64]) {
    let i = global_id().x;
    if i < x.len() {
        out[i] = x[i].isqrt();
        of_wide[i] = wide[i].isqrt();
    }
}

/// Squares, and the numbers beside them, where a root that is off by little is another integer.
fn roots_beside_squares(jit: &Jit) -> Outcome {
    let mut bases: Vec<u64> = (0..2000).map(|i| i * 33).collect();
    bases.extend((0..32).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 1]));
    bases.extend((0..500).map(|i| u64::from(u32::MAX) - i * i * 17_001));
    let beside = |n: u64| [n.wrapping_sub(1), n, n + 1];
    let wide: Vec<u64> = bases.iter().flat_map(|&b| beside(b * b)).collect();
    let narrow: Vec<u32> = bases
        .iter()
        .flat_map(|&b| beside((b & 0xffff) * (b & 0xffff)))
        .map(|n| n as u32)
        .collect();
    let (mut out, mut of_wide) = (jit.zeros(narrow.len())?, jit.zeros(wide.len())?);
    let grid = (grid_for(wide.len(), 64), 64);
    let (x, y) = (jit.upload(&narrow)?, jit.upload(&wide)?);
    roots.launch(jit, grid, &x, &y, &mut out, &mut of_wide)?;
    for (x, root) in narrow.into_iter().zip(out.to_vec()?) {
        assert_eq!(root, x.isqrt(), "{x}");
    }
    for (x, root) in wide.into_iter().zip(of_wide.to_vec()?) {
        assert_eq!(root, x.isqrt(), "{x}");
    }
    Ok(())
}

#[kernel]
fn logarithms(x: &[u64], out: &mut [[u32; 6]]) {
    let i = global_id().x;
    if i < x.len() {
        let (half, byte) = (x[i] as u16, x[i] as u8);
        out[i] = [
            x[i].ilog10(),
            (x[i] as u32 | 1).ilog10(),
            (half | 1).ilog10(),
            (byte | 1).ilog10(),
            x[i].ilog(3),
            x[i].ilog2(),
        ];
    }
}

/// Powers of 10, and the numbers beside them.
fn logarithms_beside_powers(jit: &Jit) -> Outcome {
    let powers = (0..20).map(|n| 10u64.pow(n));
    let others = (0..64).map(|n| 1 << n).chain((0..41).map(|n| 3u64.pow(n)));
    let x: Vec<u64> = (powers.chain(others))
        .flat_map(|n: u64| [n.saturating_sub(1).max(1), n, n + 1])
        .chain([u64::MAX, u32::MAX.into()])
        .chain(1..300)
        .collect();
    let mut out = jit.zeros(x.len())?;
    logarithms.launch(jit, (grid_for(x.len(), 64), 64), &jit.upload(&x)?, &mut out)?;
    for (x, logs) in x.into_iter().zip(out.to_vec()?) {
        let wanted = [
            x.ilog10(),
            (x as u32 | 1).ilog10(),
            (x as u16 | 1).ilog10(),
            (x as u8 | 1).ilog10(),
            x.ilog(3),
            x.ilog2(),
        ];
        assert_eq!(logs, wanted, "{x}");
    }
    Ok(())
}

#[kernel]
fn undefined(x: &[i32], out: &mut [u32], wide: &mut [u64]) {
    let zero = x[0];
    let (negative, none) = (zero - 5, zero as u64);
    out[0] = zero.ilog2();
    out[1] = zero.ilog10();
    out[2] = zero.ilog(10);
    out[3] = negative.ilog(10);
    out[4] = 100i32.ilog(zero);
    out[5] = negative.ilog2();
    out[6] = negative.isqrt() as u32;
    out[7] = (zero as u32).next_multiple_of(none as u32) + 7u32.next_multiple_of(none as u32);
    wide[0] = (none + 5).next_multiple_of(none);
    wide[1] = ((none + 1) << 63).wrapping_add(1).next_power_of_two();
    wide[2] = none.wrapping_sub(1).next_multiple_of(2);
}

/// What the documentation says of arguments for which the host panics.
fn what_rust_panics_for(jit: &Jit) -> Outcome {
    let (mut out, mut wide) = (jit.zeros(8)?, jit.zeros(3)?);
    undefined.launch(jit, (1, 1), &jit.upload(&[0])?, &mut out, &mut wide)?;
    assert_eq!(out.to_vec()?, [u32::MAX, 0, 0, 0, 6, 31, 65_535, 7]);
    assert_eq!(wide.to_vec()?, [5, 0, 0]);
    Ok(())
}
