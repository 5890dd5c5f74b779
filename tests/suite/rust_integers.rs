//! Methods of integers and their like: the host's results for every width, at edges and at random
//! bits.

use kiln::prelude::*;

use super::Outcome;

super::chapter![
    of_i8,
    of_i16,
    of_i32,
    of_i64,
    of_u8,
    of_u16,
    of_u32,
    of_u64,
    of_floats,
    sums_of_u8,
    sums_of_u16,
    sums_of_u32,
    sums_of_i16,
    sums_of_i32
];

/// Integers with few ones, few zeros, and as chance has them.
pub(super) fn samples() -> Vec<u64> {
    let mut samples = vec![0, u64::MAX, 0x5555_5555_5555_5555, 0x0123_4567_89ab_cdef];
    for bit in 0..64 {
        let one = 1u64 << bit;
        samples.extend([one, !one, one - 1, one | 1, one.wrapping_neg()]);
    }
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..200 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        samples.push(state);
    }
    samples
}

/// A case that gives a function of two integers all samples, each beside some others, on the host and in
/// a kernel.
macro_rules! case {
    ($case:ident, $t:ident, $module:ident, |$x:ident, $y:ident, $n:ident| $body:block) => {
        mod $module {
            use kiln::prelude::*;

            /// Many results, folded into one.
            #[device_fn]
            pub fn folded($x: $t, $y: $t, $n: u32) -> u64 {
                $body
            }

            #[kernel]
            pub fn kernel(x: &[$t], y: &[$t], n: &[u32], out: &mut [u64]) {
                let i = global_id().x;
                if i < x.len() {
                    out[i] = folded(x[i], y[i], n[i]);
                }
            }
        }

        fn $case(jit: &Jit) -> Outcome {
            let samples = samples();
            let all = samples.len();
            // Each with its neighbours, some far away, and small numbers.
            let pair = |i: usize| (samples[i % all], samples[(i * 7 + i / all) % all]);
            let small = |(i, y): (usize, u64)| if i % 3 == 0 { y % 5 } else { y };
            let x: Vec<$t> = (0..all * 4).map(|i| pair(i).0 as $t).collect();
            let y: Vec<$t> = (0..all * 4).map(|i| small((i, pair(i).1)) as $t).collect();
            let n: Vec<u32> = (0..all * 4).map(|i| (i * 5 % 131) as u32).collect();
            let mut out = jit.zeros::<u64>(x.len())?;
            let buffers = (jit.upload(&x)?, jit.upload(&y)?, jit.upload(&n)?);
            let config = (grid_for(x.len(), 64), 64);
            $module::kernel.launch(jit, config, &buffers.0, &buffers.1, &buffers.2, &mut out)?;
            for (i, got) in out.to_vec()?.into_iter().enumerate() {
                let want = $module::folded(x[i], y[i], n[i]);
                assert_eq!(got, want, "{:#x}, {:#x}, {}", x[i], y[i], n[i]);
            }
            Ok(())
        }
    };
}

pub(super) use case;

/// What integers of a type parameter have.
#[device_fn]
pub fn of_any<T: Int>(x: T, y: T, n: u32) -> T {
    let powers = x.wrapping_pow(n & 15) ^ T::wrapping_neg(y).wrapping_pow(3);
    let shifted = x.wrapping_shl(n) ^ x.wrapping_shr(n).wrapping_sub(T::wrapping_shl(y, 3));
    let divisor = if y == T::ZERO { T::ONE } else { y };
    powers ^ shifted ^ x.wrapping_div(divisor) ^ x.wrapping_rem(divisor)
}

/// What signed and unsigned integers have in common, then what is said besides.
macro_rules! integers {
    ($($case:ident $t:ident $module:ident |$x:ident, $y:ident| $more:expr;)*) => {$(
        case!($case, $t, $module, |$x, $y, n| {
            let mut sum = $x.count_ones() as u64;
            sum = sum * 65 + $x.count_zeros() as u64;
            sum = sum * 65 + $x.leading_zeros() as u64;
            sum = sum * 65 + $x.trailing_zeros() as u64;
            sum = sum * 65 + $x.leading_ones() as u64;
            sum = sum * 65 + $x.trailing_ones() as u64;
            let bits = [
                $x.reverse_bits() as u64,
                $x.swap_bytes() as u64,
                $x.rotate_left(n) as u64,
                $x.rotate_right(n) as u64,
                $x.abs_diff($y) as u64,
                $x.saturating_add($y) as u64,
                $x.saturating_sub($y) as u64,
                $x.wrapping_pow(n & 15) as u64,
                $x.wrapping_pow(3) as u64,
                ($x & 3).pow(n & 3) as u64,
                $x.clamp(5, 90) as u64,
                $t::count_ones($y) as u64,
                super::of_any($x, $y, n) as u64,
                $more,
            ];
            for i in 0..bits.len() {
                sum = sum.wrapping_mul(0x0100_0000_01b3) ^ bits[i];
            }
            sum
        });
    )*};
}

/// Sums of absolute differences, for which GPUs have one instruction.
macro_rules! sums {
    ($($case:ident $t:ident $module:ident)*) => {$(
        case!($case, $t, $module, |x, y, n| {
            let sum = n.wrapping_mul(0x0100_0193).wrapping_add(x.abs_diff(y) as u32);
            let above = if x >= y { x.wrapping_sub(y) } else { y.wrapping_sub(x) };
            (sum as u64) << 32 | (above as u64 & 0xffff_ffff)
        });
    )*};
}
sums! {
    sums_of_u8 u8 of_bytes  sums_of_u16 u16 of_shorts  sums_of_u32 u32 of_words
    sums_of_i16 i16 of_signed_shorts  sums_of_i32 i32 of_signed_words
}

/// Methods of signed integers. A divisor of 0 is none here, as the host panics for it.
macro_rules! signed {
    ($($case:ident $t:ident $module:ident)*) => {
        integers! {$(
            $case $t $module |x, y| {
                let by = if y == 0 || y == -1 { 3 } else { y };
                let euclid = (x.rem_euclid(by) as u64) ^ (x.div_euclid(by) as u64).rotate_left(7);
                let wrapped = x.wrapping_div(if y == 0 { 1 } else { y }) as u64
                    ^ x.wrapping_rem(if y == 0 { 1 } else { y }) as u64;
                (euclid ^ wrapped)
                    .wrapping_add(x.signum() as u64)
                    .wrapping_mul(31)
                    .wrapping_add(x.wrapping_abs() as u64)
                    .wrapping_mul(31)
                    .wrapping_add(x.unsigned_abs() as u64)
            };
        )*}
    };
}
signed! { of_i8 i8 on_i8  of_i16 i16 on_i16  of_i32 i32 on_i32  of_i64 i64 on_i64 }

/// Methods of unsigned integers.
macro_rules! unsigned {
    ($($case:ident $t:ident $module:ident)*) => {
        integers! {$(
            $case $t $module |x, y| {
                let by = y.max(1);
                let euclid = x.rem_euclid(by) as u64 ^ x.div_euclid(by) as u64;
                let powers = x.is_power_of_two() as u64 + 2 * y.is_power_of_two() as u64;
                (euclid ^ powers).wrapping_mul(31).wrapping_add(x.div_ceil(by) as u64)
            };
        )*}
    };
}
unsigned! { of_u8 u8 on_u8  of_u16 u16 on_u16  of_u32 u32 on_u32  of_u64 u64 on_u64 }

#[device_fn]
fn of_float(x: f32, n: i32) -> [f32; 4] {
    [x.signum(), x.clamp(-1.5, 2.0), x.powi(n), x.powi(3)]
}

#[device_fn]
fn of_double(x: f64, n: i32) -> [f64; 3] {
    [x.signum(), x.clamp(-1.5, 2.0), x.powi(n)]
}

#[kernel]
fn floats(x: &[f32], n: &[i32], out: &mut [[f32; 4]], wide: &mut [[f64; 3]]) {
    let i = global_id().x;
    if i < x.len() {
        out[i] = of_float(x[i], n[i]);
        wide[i] = of_double(x[i] as f64, n[i]);
    }
}

fn of_floats(jit: &Jit) -> Outcome {
    let jit = &super::exact(jit);
    let values = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.75,
        -2.5,
        1e-40,
        3e38,
        f32::INFINITY,
        f32::NAN,
    ];
    let powers = [-3, 0, 1, 2, 5];
    let x: Vec<f32> = (0..50).map(|i| values[i % 10]).collect();
    let n: Vec<i32> = (0..50).map(|i| powers[i / 10]).collect();
    let mut out = jit.zeros::<[f32; 4]>(50)?;
    let mut wide = jit.zeros::<[f64; 3]>(50)?;
    floats.launch(
        jit,
        (1, 64),
        &jit.upload(&x)?,
        &jit.upload(&n)?,
        &mut out,
        &mut wide,
    )?;
    // The host's `powi` may round otherwise; a product of exact factors does not.
    let power = |x: f64, n: i32| (0..n.abs()).fold(1.0, |p, _| p * x);
    let close = |got: f64, want: f64| {
        (got.is_nan() && want.is_nan()) || got == want || (got / want - 1.0).abs() < 1e-5
    };
    for (i, (got, wide)) in out.to_vec()?.into_iter().zip(wide.to_vec()?).enumerate() {
        let want = of_float(x[i], n[i]);
        let want_wide = of_double(x[i].into(), n[i]);
        for part in 0..2 {
            let same = |a: u64, b: u64, nan: bool| nan || a == b;
            let nan = want[part].is_nan() && got[part].is_nan();
            assert!(
                same(got[part].to_bits().into(), want[part].to_bits().into(), nan),
                "{}",
                x[i]
            );
            let nan = want_wide[part].is_nan() && wide[part].is_nan();
            assert!(
                same(wide[part].to_bits(), want_wide[part].to_bits(), nan),
                "{}",
                x[i]
            );
        }
        let raised = power(x[i].into(), n[i]);
        let raised = if n[i] < 0 { 1.0 / raised } else { raised };
        assert!(close(wide[2], raised), "{} to {}: {}", x[i], n[i], wide[2]);
        assert!(
            close(got[2].into(), f64::from(x[i].powi(n[i]))),
            "{} to {}",
            x[i],
            n[i]
        );
        assert!(
            close(got[3].into(), f64::from(x[i] * x[i] * x[i])),
            "{}",
            x[i]
        );
    }
    Ok(())
}
