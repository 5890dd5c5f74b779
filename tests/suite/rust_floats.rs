//! What floats are made of, in `#[kernel]` functions: the host's bits, at all exponents and at edges.

use half::{bf16, f16};
use kiln::prelude::*;

use super::{Outcome, chapter};

chapter![
    numbers_and_their_neighbours,
    parts_of_every_float,
    exponents_added,
    two_floats_divided,
    middles,
    products_are_rounded_before,
    bits_of_halves,
];

/// Numbers of all exponents, and where functions have their edges.
fn singles() -> Vec<f32> {
    let of = |i: u32| i.wrapping_mul(0x9e37_79b9) >> 9 | (i % 256) << 23 | (i & 1) << 31;
    let edges = [
        0.0,
        0.5,
        0.499_999_97,
        0.500_000_06,
        1.0,
        1.5,
        2.5,
        3.5,
        0.999_999_94,
        8_388_607.5,
        8_388_606.5,
        8_388_608.0,
        8_388_609.0,
        4_194_303.5,
        16_777_215.0,
        180.0,
        1e-45,
        f32::MIN_POSITIVE,
        1.175_494_2e-38,
        f32::MAX,
        f32::INFINITY,
        f32::NAN,
    ];
    (0..512u32)
        .map(|i| f32::from_bits(of(i)))
        .chain((0..200).map(|i| i as f32 * 0.25 - 25.0))
        .chain(edges.into_iter().flat_map(|x| [x, -x]))
        .collect()
}

/// The same of doubles.
fn doubles() -> Vec<f64> {
    let of =
        |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 12 | (i % 2048) << 52 | (i & 1) << 63;
    let edges = [
        0.499_999_999_999_999_94,
        4_503_599_627_370_495.5,
        4_503_599_627_370_494.5,
        5e-324,
        f64::MIN_POSITIVE,
        2.225_073_858_507_201e-308,
        f64::MAX,
    ];
    (0..4096u64)
        .map(|i| f64::from_bits(of(i)))
        .chain(singles().into_iter().map(f64::from))
        .chain(edges.into_iter().flat_map(|x| [x, -x]))
        .collect()
}

/// Whether bits are the same, or both numbers are NaN.
fn same(got: f64, want: f64) -> bool {
    got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan()
}

/// A case of numbers of one type: what they are in a kernel is what they are on the host.
macro_rules! of_type {
    ($module:ident, $t:ident) => {
        mod $module {
            use kiln::prelude::*;

            #[device_fn]
            fn known(x: $t) -> [$t; 8] {
                let classes = x.is_normal() as u32 + 2 * (x.is_subnormal() as u32);
                [
                    x.next_up(),
                    x.next_down(),
                    $t::from_bits(x.to_bits() ^ 1),
                    $t::round(x),
                    x.fract(),
                    x.to_degrees(),
                    x.to_radians(),
                    classes as $t,
                ]
            }

            #[kernel]
            fn kernel(x: &[$t], out: &mut [[$t; 8]]) {
                let i = global_id().x;
                if i < x.len() {
                    out[i] = known(x[i]);
                }
            }

            pub(super) fn check(jit: &Jit, x: &[$t]) -> super::Outcome {
                let mut out = jit.zeros::<[$t; 8]>(x.len())?;
                kernel.launch(jit, (grid_for(x.len(), 64), 64), &jit.upload(x)?, &mut out)?;
                for (&x, got) in x.iter().zip(out.to_vec()?) {
                    let same = |(&a, &b): (&$t, &$t)| super::same(a.into(), b.into());
                    let want = known(x);
                    assert!(
                        got.iter().zip(&want).all(same),
                        "{x:e}: {got:?}, not {want:?}"
                    );
                }
                Ok(())
            }
        }
    };
}
of_type! { of_f32, f32 }
of_type! { of_f64, f64 }

fn numbers_and_their_neighbours(jit: &Jit) -> Outcome {
    of_f32::check(jit, &singles())?;
    of_f64::check(jit, &doubles())
}

#[device_fn]
fn parts<T: Float>(x: T) -> ([T; 6], [i32; 3]) {
    let (fraction, exponent) = x.frexp();
    let (again, _) = T::frexp(fraction);
    // Which sign the remainder of an infinity has is left to the machine.
    let left = if x.is_finite() { x.fract() } else { T::ZERO };
    let classes = x.is_finite() as i32 + 2 * (x.is_infinite() as i32) + 4 * (x.is_nan() as i32);
    let signs = x.is_sign_negative() as i32 + 2 * (T::is_sign_positive(x) as i32);
    (
        [fraction, again, x.round(), left, x.abs().rsqrt(), x.logb()],
        [exponent, x.ilogb(), classes + 8 * signs],
    )
}

#[kernel]
fn all_parts<T: Float>(x: &[T], out: &mut [[T; 6]], numbers: &mut [[i32; 3]]) {
    let i = global_id().x;
    if i < x.len() {
        (out[i], numbers[i]) = parts(x[i]);
    }
}

fn parts_of_every_float(jit: &Jit) -> Outcome {
    // The host has `rsqrt` by its own operations, which differ by units in the last place.
    fn check<T: Float + KernelType + std::fmt::Debug>(jit: &Jit, x: &[T], unit: f64) -> Outcome
    where
        [T; 6]: KernelType,
    {
        let mut out = jit.upload(&vec![[T::ZERO; 6]; x.len()])?;
        let mut numbers = jit.zeros::<[i32; 3]>(x.len())?;
        let config = (grid_for(x.len(), 64), 64);
        all_parts.launch(jit, config, &jit.upload(x)?, &mut out, &mut numbers)?;
        for ((&x, got), numbers) in x.iter().zip(out.to_vec()?).zip(numbers.to_vec()?) {
            let (want, wanted) = parts(x);
            let same = |(a, b): (&T, &T)| same(a.to_f64(), b.to_f64());
            let (root, wanted_root) = (got[4].to_f64(), want[4].to_f64());
            let is_near = (root - wanted_root).abs() <= 2.0 * unit * wanted_root.abs();
            let at_root = |at: usize| at == 4 && is_near;
            assert!(
                (0..6).all(|at| same((&got[at], &want[at])) || at_root(at)),
                "{x:?}: {got:?}, not {want:?}"
            );
            assert_eq!(numbers, wanted, "{x:?}");
            if x.is_finite() && x != T::ZERO {
                // What the parts are is said by the number itself.
                let (fraction, exponent) = (want[0].to_f64(), wanted[0]);
                assert!((0.5..1.0).contains(&fraction.abs()), "{x:?}: {fraction}");
                let half = f64::from(exponent - exponent / 2).exp2();
                assert_eq!(fraction * half * f64::from(exponent / 2).exp2(), x.to_f64());
                assert_eq!(wanted[1], exponent - 1);
                assert_eq!(want[5].to_f64(), f64::from(exponent - 1), "{x:?}");
            } else {
                let of_none = match x == T::ZERO {
                    true => T::from_f64(f64::NEG_INFINITY),
                    false => x.abs(),
                };
                assert!(same((&want[5], &of_none)), "{x:?}: {:?}", want[5]);
            }
        }
        Ok(())
    }
    check(jit, &singles(), f32::EPSILON.into())?;
    check(jit, &doubles(), f64::EPSILON)?;
    // All bits but the signs of NaN.
    let halves: Vec<f16> = (0..u16::MAX).step_by(7).map(f16::from_bits).collect();
    check(jit, &halves, f16::EPSILON.into())?;
    let brains: Vec<bf16> = (0..u16::MAX).step_by(7).map(bf16::from_bits).collect();
    check(jit, &brains, bf16::EPSILON.into())
}

#[kernel]
fn scaled<T: Float>(x: &[T], n: &[i32], out: &mut [T]) {
    let i = global_id().x;
    if i < out.len() {
        out[i] = x[i % x.len()].ldexp(n[i / x.len()]);
    }
}

/// Numbers of all exponents times powers of 2 of all kinds, rounded once.
fn exponents_added(jit: &Jit) -> Outcome {
    fn check<T: Float + KernelType>(jit: &Jit, x: &[T], exact: fn(T, i32) -> f64) -> Outcome {
        let mut n: Vec<i32> = vec![
            0, 1, -1, 5, -7, 23, -24, 24, -25, 52, -53, 100, 127, 128, -126,
        ];
        n.extend([
            -127, -149, -150, 254, 277, 300, -278, -300, 1022, 1023, 1024, -1022, -1023,
        ]);
        n.extend([
            -1074,
            -1075,
            2046,
            -2100,
            2100,
            -2098,
            5000,
            -5000,
            i32::MAX,
            i32::MIN,
        ]);
        let mut out = jit.zeros::<T>(x.len() * n.len())?;
        let config = (grid_for(out.len(), 64), 64);
        scaled.launch(jit, config, &jit.upload(x)?, &jit.upload(&n)?, &mut out)?;
        for (i, got) in out.to_vec()?.into_iter().enumerate() {
            let (x, n) = (x[i % x.len()], n[i / x.len()]);
            let (got, want) = (got.to_f64(), exact(x, n));
            assert!(
                same(got, want),
                "{:e} times 2^{n} is {want:e}, not {got:e}",
                x.to_f64()
            );
            let host = x.ldexp(n).to_f64();
            assert!(
                same(host, want),
                "{:e} times 2^{n} is {want:e}, not {host:e}",
                x.to_f64()
            );
        }
        Ok(())
    }
    // Whatever of an `f32` is beyond the exponents of `f64` is beyond its own.
    check(jit, &singles(), |x, n| {
        let n = f64::from(n.clamp(-400, 400));
        f64::from((f64::from(x) * n.exp2()) as f32)
    })?;
    check(
        jit,
        &singles().into_iter().map(f16::from_f32).collect::<Vec<_>>(),
        |x, n| {
            let n = f64::from(n.clamp(-400, 400));
            let exact = f64::from(x) * n.exp2();
            f64::from(f16::from_f32(exact as f32))
        },
    )?;
    // By integers: the significand shifted, to the nearest, ties to even.
    check(jit, &doubles(), |x, n| {
        if x == 0.0 || !x.is_finite() {
            return x;
        }
        let bits = x.to_bits() & (u64::MAX >> 1);
        let (significand, exponent) = match bits >> 52 {
            0 => (bits, -1074),
            field => (bits & (u64::MAX >> 12) | 1 << 52, field as i64 - 1075),
        };
        let exponent = exponent + i64::from(n);
        // Of all numbers below 2^-1074 as many bits are dropped.
        let dropped = (-1074 - exponent).clamp(0, 60) as u32;
        let (kept, rest) = (significand >> dropped, significand & ((1 << dropped) - 1));
        let tie = 1u64 << dropped >> 1;
        let up = dropped > 0 && (rest > tie || rest == tie && kept & 1 == 1);
        let exponent = exponent.clamp(-1074, 1200);
        let rounded = (kept + u64::from(up)) as f64;
        let (half, rest) = (exponent / 2, exponent - exponent / 2);
        (rounded * (half as f64).exp2() * (rest as f64).exp2()).copysign(x)
    })
}

/// Every number beside some others.
fn beside<T: Copy>(x: &[T]) -> (Vec<T>, Vec<T>) {
    let other = |i: usize| x[(i * 7 + i / x.len() * 3) % x.len()];
    (0..3 * x.len()).map(|i| (x[i % x.len()], other(i))).unzip()
}

/// A case of two numbers of one type.
macro_rules! of_two {
    ($module:ident, $t:ident) => {
        mod $module {
            use kiln::prelude::*;

            #[device_fn]
            fn divided(x: $t, y: $t) -> [$t; 3] {
                [x.rem_euclid(y), x.div_euclid(y), $t::midpoint(x, y)]
            }

            #[kernel]
            fn kernel(x: &[$t], y: &[$t], out: &mut [[$t; 3]]) {
                let i = global_id().x;
                if i < x.len() {
                    out[i] = divided(x[i], y[i]);
                }
            }

            pub(super) fn check(
                jit: &Jit,
                parts: std::ops::Range<usize>,
                x: &[$t],
                y: &[$t],
            ) -> super::Outcome {
                let mut out = jit.zeros::<[$t; 3]>(x.len())?;
                let config = (grid_for(x.len(), 64), 64);
                kernel.launch(jit, config, &jit.upload(x)?, &jit.upload(y)?, &mut out)?;
                for (i, got) in out.to_vec()?.into_iter().enumerate() {
                    let want = divided(x[i], y[i]);
                    for part in parts.clone() {
                        let (got, want) = (got[part], want[part]);
                        let same = super::same(got.into(), want.into());
                        assert!(same, "{:e}, {:e}: {got:e}, not {want:e}", x[i], y[i]);
                    }
                }
                Ok(())
            }
        }
    };
}
of_two! { two_f32, f32 }
of_two! { two_f64, f64 }

fn two_floats_divided(jit: &Jit) -> Outcome {
    let (x, y) = beside(&singles());
    two_f32::check(jit, 0..2, &x, &y)?;
    let (x, y) = beside(&doubles());
    two_f64::check(jit, 0..2, &x, &y)
}

fn middles(jit: &Jit) -> Outcome {
    let (mut x, mut y) = beside(&singles());
    // Neighbours, whose middle is a tie, and numbers whose sum overflows.
    x.extend(singles());
    y.extend(singles().into_iter().map(|x| x.next_up()));
    x.extend([f32::MAX, f32::MAX, f32::MIN, 1.5 * f32::MIN_POSITIVE]);
    y.extend([f32::MAX, 1e-45, -1e38, -1e-45]);
    two_f32::check(jit, 2..3, &x, &y)?;
    let (mut x, mut y) = beside(&doubles());
    x.extend([f64::MAX, f64::MAX, f64::MIN, 1.5 * f64::MIN_POSITIVE]);
    y.extend([f64::MAX, 5e-324, -1e308, -5e-324]);
    two_f64::check(jit, 2..3, &x, &y)
}

#[kernel]
fn of_products(x: &[f32], y: &[f32], out: &mut [[f32; 4]]) {
    let i = global_id().x;
    if i < x.len() {
        let product = x[i] * y[i];
        out[i] = [
            product.round(),
            product.fract(),
            product.midpoint(1.0),
            (x[i] * y[i]).ldexp(1),
        ];
    }
}

/// A compiler that may fuse a product with a sum does not look into these functions: what they are of is rounded.
fn products_are_rounded_before(jit: &Jit) -> Outcome {
    // Factors whose product is next to a tie, and rounded to it.
    let x: Vec<f32> = (0..4000).map(|i| 1.0 + i as f32 * 0.000_317).collect();
    let y: Vec<f32> = x
        .iter()
        .enumerate()
        .map(|(i, x)| (i as f32 + 0.5) / x)
        .collect();
    let exact = |i: usize| f64::from(x[i]) * f64::from(y[i]);
    let decides = |i: &usize| exact(*i).round() != f64::from((x[*i] * y[*i]).round());
    assert!((0..x.len()).filter(decides).count() > 100);
    let mut out = jit.zeros::<[f32; 4]>(x.len())?;
    let config = (grid_for(x.len(), 64), 64);
    of_products.launch(jit, config, &jit.upload(&x)?, &jit.upload(&y)?, &mut out)?;
    for (i, got) in out.to_vec()?.into_iter().enumerate() {
        let product = x[i] * y[i];
        let want = [
            product.round(),
            product.fract(),
            product.midpoint(1.0),
            product * 2.0,
        ];
        assert_eq!(got, want, "{} * {}", x[i], y[i]);
    }
    Ok(())
}

#[kernel]
fn half_bits(bits: &[u16], halves: &mut [f16], brains: &mut [bf16], out: &mut [[u16; 4]]) {
    let i = global_id().x;
    if i < bits.len() {
        let (half, brain) = (f16::from_bits(bits[i]), bf16::from_bits(bits[i]));
        halves[i] = half;
        brains[i] = brain;
        out[i] = [
            half.to_bits(),
            brain.to_bits(),
            half.is_normal() as u16
                + 2 * (half.is_finite() as u16)
                + 4 * (half.is_sign_negative() as u16),
            brain.is_normal() as u16
                + 2 * (brain.is_infinite() as u16)
                + 4 * (brain.is_sign_positive() as u16),
        ];
    }
}

/// All bits there are: numbers keep theirs.
fn bits_of_halves(jit: &Jit) -> Outcome {
    let bits: Vec<u16> = (0..=u16::MAX).step_by(5).collect();
    let (mut halves, mut brains) = (
        jit.zeros::<f16>(bits.len())?,
        jit.zeros::<bf16>(bits.len())?,
    );
    let mut out = jit.zeros::<[u16; 4]>(bits.len())?;
    let config = (grid_for(bits.len(), 64), 64);
    half_bits.launch(
        jit,
        config,
        &jit.upload(&bits)?,
        &mut halves,
        &mut brains,
        &mut out,
    )?;
    let numbers = halves.to_vec()?.into_iter().zip(brains.to_vec()?);
    for ((&bits, (half, brain)), got) in bits.iter().zip(numbers).zip(out.to_vec()?) {
        assert_eq!((half.to_bits(), brain.to_bits()), (bits, bits));
        let (half, brain) = (f16::from_bits(bits), bf16::from_bits(bits));
        let want = [
            bits,
            bits,
            half.is_normal() as u16
                + 2 * (half.is_finite() as u16)
                + 4 * (half.is_sign_negative() as u16),
            brain.is_normal() as u16
                + 2 * (brain.is_infinite() as u16)
                + 4 * (brain.is_sign_positive() as u16),
        ];
        assert_eq!(got, want, "{bits:#x}");
    }
    Ok(())
}
