//! Functions of statistics, angles in half turns, and what Rust's floats lack of CUDA's, for floats of all sizes: near
//! what the host has, and exact where they are.

use half::{bf16, f16};
use kiln::prelude::*;
use kiln::stdlib::math::FloatOps;

use super::{Outcome, chapter};

chapter![
    near_the_host,
    special_values,
    signs_of_gamma,
    inverses_lead_back,
    remainders_to_the_nearest,
    numbers_that_are_none,
];

#[device_fn]
fn all<T: Float>(x: T, y: T) -> [T; 12] {
    let (fraction, whole) = x.modf();
    let (log, _) = x.abs().ln_gamma();
    [
        x.sin_pi(),
        x.cos_pi(),
        x.erfcx(),
        x.erf_inv(),
        x.normcdf(),
        x.gamma(),
        log,
        x.rcbrt(),
        x.rhypot(y),
        x.fdim(y),
        fraction,
        whole,
    ]
}

#[kernel]
fn functions<T: Float>(x: &[T], y: &[T], out: &mut [[T; 12]], saturated: &mut [T]) {
    for i in grid_stride(x.len()) {
        out[i] = all(x[i], y[i]);
        saturated[i] = x[i].saturate();
    }
}

/// All results for some numbers, and what `saturate` makes of them.
fn apply<T: Float + KernelType>(
    jit: &Jit,
    x: &[T],
    y: &[T],
) -> kiln::Result<(Vec<[T; 12]>, Vec<T>)> {
    let (mut out, mut saturated) = (jit.upload(&vec![[T::ZERO; 12]; x.len()])?, jit.upload(x)?);
    let (x, y) = (jit.upload(x)?, jit.upload(y)?);
    functions.launch(jit, (2, 64), &x, &y, &mut out, &mut saturated)?;
    Ok((out.to_vec()?, saturated.to_vec()?))
}

fn near_the_host(jit: &Jit) -> Outcome {
    fn check<T: Float + KernelType>(jit: &Jit, epsilon: f64, least: f64) -> Outcome {
        let numbers = (-75..75).map(|i| f64::from(i) * 0.11 + 0.013);
        let x: Vec<T> = numbers.map(T::from_f64).collect();
        let y: Vec<T> = x.iter().rev().map(|&y| y * T::from_f64(1.7)).collect();
        let (results, saturated) = apply(jit, &x, &y)?;
        for (i, result) in results.into_iter().enumerate() {
            let wanted = all(x[i], y[i]);
            for (n, (result, wanted)) in result.into_iter().zip(wanted).enumerate() {
                let (result, wanted) = (result.to_f64(), wanted.to_f64());
                let is_near = (result - wanted).abs() <= (wanted.abs() * epsilon).max(least);
                let is_same = result == wanted || result.is_nan() && wanted.is_nan();
                assert!(
                    is_same || is_near,
                    "{n} of {}: {result:e}, {wanted:e}",
                    x[i].to_f64()
                );
            }
            assert_eq!(saturated[i].to_f64(), x[i].to_f64().clamp(0.0, 1.0));
        }
        Ok(())
    }
    check::<f64>(jit, 16.0 * f64::EPSILON, 1e-300)?;
    check::<f32>(jit, 10.0 * f64::from(f32::EPSILON), 1e-37)?;
    check::<f16>(jit, 2.0 * f16::EPSILON.to_f64(), 1e-6)?;
    check::<bf16>(jit, 2.0 * bf16::EPSILON.to_f64(), 1e-37)
}

fn special_values(jit: &Jit) -> Outcome {
    const INF: f64 = f64::INFINITY;
    const NAN: f64 = f64::NAN;
    /// A number, and what is made of it: sine and cosine, three functions of the normal distribution, the gamma
    /// function, the logarithm of that of its magnitude, the reciprocal of its cube root.
    const VALUES: [(f64, [f64; 8]); 12] = [
        (0.0, [0.0, 1.0, 1.0, 0.0, 0.5, INF, INF, INF]),
        (-0.0, [-0.0, 1.0, 1.0, -0.0, 0.5, -INF, INF, -INF]),
        (1.0, [0.0, -1.0, NAN, INF, NAN, 1.0, 0.0, 1.0]),
        (-1.0, [-0.0, -1.0, NAN, -INF, NAN, NAN, 0.0, -1.0]),
        (2.0, [0.0, 1.0, NAN, NAN, NAN, 1.0, 0.0, NAN]),
        (-7.0, [-0.0, -1.0, NAN, NAN, NAN, NAN, NAN, NAN]),
        (5.0, [0.0, -1.0, NAN, NAN, NAN, 24.0, NAN, NAN]),
        (1.5, [-1.0, 0.0, NAN, NAN, NAN, NAN, NAN, NAN]),
        (-2.5, [-1.0, 0.0, NAN, NAN, NAN, NAN, NAN, NAN]),
        (INF, [NAN, NAN, 0.0, NAN, 1.0, INF, INF, 0.0]),
        (-INF, [NAN, NAN, INF, NAN, 0.0, NAN, INF, -0.0]),
        (NAN, [NAN; 8]),
    ];
    // NaN where the result is not told exactly, and is a number.
    let is_told = |x: f64, n: usize, wanted: f64| match (n, x) {
        _ if !wanted.is_nan() => true,
        (0 | 1, _) => true,
        (3, _) => x.abs() > 1.0 || x.is_nan(),
        (5, _) => x < 0.0 && x.trunc() == x || x.is_nan(),
        _ => x.is_nan(),
    };
    fn check<T: Float + KernelType>(
        jit: &Jit,
        is_told: impl Fn(f64, usize, f64) -> bool,
    ) -> Outcome {
        let x: Vec<T> = VALUES.iter().map(|&(x, _)| T::from_f64(x)).collect();
        let y = vec![T::from_f64(-3.0); x.len()];
        let (results, saturated) = apply(jit, &x, &y)?;
        let same = |a: f64, b: f64| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
        for (i, (x, wanted)) in VALUES.into_iter().enumerate() {
            let of_host = all(T::from_f64(x), T::from_f64(-3.0));
            for (who, result) in [("device", results[i]), ("host", of_host)] {
                for (n, wanted) in wanted.into_iter().enumerate() {
                    let result = result[n].to_f64();
                    let right = same(result, wanted) || !is_told(x, n, wanted);
                    assert!(right, "{who}: {n} of {x} is {result:?}, not {wanted:?}");
                }
                let [.., length, more, fraction, whole] = result.map(T::to_f64);
                let infinite = x.is_infinite();
                assert!(
                    same(length, 0.0) == infinite,
                    "{who}: rhypot of {x} is {length}"
                );
                let wanted = if x <= -3.0 { 0.0 } else { x + 3.0 };
                assert!(same(more, wanted), "{who}: fdim of {x} is {more}");
                let wanted = if infinite { 0.0 } else { x.fract() }.copysign(x);
                let right = same(fraction, wanted) && same(whole, x.trunc());
                assert!(
                    right || x.is_nan(),
                    "{who}: modf of {x} is {fraction}, {whole}"
                );
            }
            let wanted = if x.is_nan() { 0.0 } else { x.clamp(0.0, 1.0) };
            assert_eq!(saturated[i].to_f64(), wanted, "saturate of {x}");
        }
        Ok(())
    }
    check::<f64>(jit, is_told)?;
    check::<f32>(jit, is_told)
}

#[kernel]
fn logarithms(x: &[f32], signs: &mut [i32], back: &mut [f32]) {
    let i = global_id().x;
    if i < x.len() {
        let (log, sign) = x[i].ln_gamma();
        (signs[i], back[i]) = (sign, log.exp() * sign as f32);
    }
}

fn signs_of_gamma(jit: &Jit) -> Outcome {
    let x: Vec<f32> = (-44..44)
        .map(|i| i as f32 * 0.25)
        .chain([-0.0, 1e-30, -1e-30])
        .collect();
    let (mut signs, mut back) = (jit.zeros(x.len())?, jit.zeros(x.len())?);
    logarithms.launch(jit, (1, 96), &jit.upload(&x)?, &mut signs, &mut back)?;
    let (signs, back) = (signs.to_vec()?, back.to_vec()?);
    for (i, &x) in x.iter().enumerate() {
        let gamma = FloatOps::gamma(x);
        let (log, sign) = FloatOps::ln_gamma(x);
        assert_eq!(signs[i], sign, "of {x}");
        match gamma.is_nan() {
            // A pole.
            true => assert_eq!((log, back[i]), (f32::INFINITY, f32::INFINITY), "of {x}"),
            false => {
                let is_near = (back[i] / gamma - 1.0).abs() < 1e-4 || back[i] == gamma;
                assert!(is_near, "of {x}: {} and {gamma}", back[i]);
                assert_eq!(sign < 0, gamma < 0.0, "of {x}");
            }
        }
    }
    Ok(())
}

#[kernel]
fn inverses<T: Float>(x: &[T], out: &mut [[T; 4]]) {
    for i in grid_stride(x.len()) {
        let (y, z) = (x[i].erfc_inv(), x[i].normcdf_inv());
        out[i] = [y, z, y.erfc(), z.normcdf()];
    }
}

/// What is between the ends of their domains comes back; the ends are infinite, and beyond there is nothing.
fn inverses_lead_back(jit: &Jit) -> Outcome {
    fn check<T: Float + KernelType>(jit: &Jit, least: i32, epsilon: f64) -> Outcome {
        let small = (0..least).map(|n| 0.7 * (-f64::from(n)).exp2());
        let even = (1..80).map(|n| f64::from(n) * 0.025);
        let edges = [0.0, -0.0, 1.0, 2.0, 2.5, -0.5, f64::INFINITY, f64::NAN];
        let x: Vec<T> = small.chain(even).chain(edges).map(T::from_f64).collect();
        let mut out = jit.upload(&vec![[T::ZERO; 4]; x.len()])?;
        inverses.launch(jit, (2, 64), &jit.upload(&x)?, &mut out)?;
        for (x, out) in x.into_iter().zip(out.to_vec()?) {
            let of_host = [x.erfc_inv(), x.normcdf_inv()].map(T::to_f64);
            let [y, z, of_y, of_z] = out.map(T::to_f64);
            let x = x.to_f64();
            for (n, (result, host)) in [y, z].into_iter().zip(of_host).enumerate() {
                let is_near = (result - host).abs() <= epsilon * host.abs().max(epsilon);
                let is_same = result == host || result.is_nan() && host.is_nan();
                assert!(is_near || is_same, "{n} of {x:e}: {result:e}, {host:e}");
            }
            for (result, back, end) in [(y, of_y, 2.0), (z, of_z, 1.0)] {
                match x {
                    0.0 => assert!(result.is_infinite() && back == x, "of {x:e}: {result:e}"),
                    _ if x == end => assert!(result.is_infinite() && back == x, "of {x:e}"),
                    // An error of the argument is as many times larger as its square is.
                    _ if x > 0.0 && x < end => assert!(
                        (back - x).abs() <= epsilon * (2.0 + 2.0 * result * result) * x,
                        "of {x:e}: {result:e}, whose function is {back:e}"
                    ),
                    _ => assert!(result.is_nan(), "of {x:e}: {result:e}"),
                }
            }
        }
        Ok(())
    }
    check::<f64>(jit, 1020, 8.0 * f64::EPSILON)?;
    check::<f32>(jit, 125, 8.0 * f64::from(f32::EPSILON))?;
    check::<f16>(jit, 14, 2.0 * f16::EPSILON.to_f64())?;
    check::<bf16>(jit, 125, 2.0 * bf16::EPSILON.to_f64())
}

#[kernel]
fn remainders<T: Float>(x: &[T], y: &[T], out: &mut [[T; 2]], quotients: &mut [i32]) {
    for i in grid_stride(x.len()) {
        let (rest, quotient) = x[i].remquo(y[i]);
        out[i] = [x[i].remainder(y[i]), rest];
        quotients[i] = quotient;
    }
}

/// Small quotients are those of integers; others are told by the definition: what is left is at most half of the divisor,
/// with the sign of the number if it is zero.
fn remainders_to_the_nearest(jit: &Jit) -> Outcome {
    fn check<T: Float + KernelType>(jit: &Jit) -> Outcome {
        let quarters: Vec<i32> = (-70..70).chain([-999, 1000, 4096]).collect();
        let divisors = [1, 2, 3, 4, 6, 7, 10, 40, -3, -8];
        let pairs = quarters
            .iter()
            .flat_map(|&x| divisors.map(|y| (f64::from(x), f64::from(y))));
        let large = [(1e4, 0.0009765625), (6e4, 1.0), (6e4, -4e4), (0.5, 3e4)];
        let inf = f64::INFINITY;
        let special = [
            (1.0, 0.0),
            (inf, 1.0),
            (-2.0, inf),
            (f64::NAN, 1.0),
            (1.0, f64::NAN),
            (-0.0, 1.0),
        ];
        let pairs: Vec<(f64, f64)> = pairs.chain(large).chain(special).collect();
        let x: Vec<T> = pairs.iter().map(|&(x, _)| T::from_f64(x)).collect();
        let y: Vec<T> = pairs.iter().map(|&(_, y)| T::from_f64(y)).collect();
        let mut out = jit.upload(&vec![[T::ZERO; 2]; x.len()])?;
        let mut quotients = jit.zeros::<i32>(x.len())?;
        let buffers = (jit.upload(&x)?, jit.upload(&y)?);
        remainders.launch(
            jit,
            (2, 64),
            &buffers.0,
            &buffers.1,
            &mut out,
            &mut quotients,
        )?;
        let (out, quotients) = (out.to_vec()?, quotients.to_vec()?);
        let same = |a: f64, b: f64| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
        for i in 0..x.len() {
            let (of_host, quotient) = x[i].remquo(y[i]);
            let (x, y) = (x[i].to_f64(), y[i].to_f64());
            // The numbers are multiples of 1/1024 below 2^16: their products are exact, and so is the quotient's tie.
            let (wanted, times) = match x.is_finite() && y.is_finite() && y != 0.0 {
                true => {
                    let times = (x / y).round_ties_even();
                    let rest = x - times * y;
                    (if rest == 0.0 { rest.copysign(x) } else { rest }, times)
                }
                false if y.is_infinite() && x.is_finite() => (x, 0.0),
                false => (f64::NAN, 0.0),
            };
            let three_bits = (times as i64).abs() % 8 * if times < 0.0 { -1 } else { 1 };
            let results = [out[i][0], out[i][1], of_host].map(T::to_f64);
            assert!(
                results.iter().all(|&r| same(r, wanted)),
                "{x}, {y}: {results:?}, not {wanted}"
            );
            let quotients = [quotients[i], quotient].map(i64::from);
            assert_eq!(quotients, [three_bits; 2], "of {x}, {y}");
        }
        Ok(())
    }
    check::<f64>(jit)?;
    check::<f32>(jit)?;
    check::<f16>(jit)?;
    check::<bf16>(jit)
}

#[kernel]
fn none(tags: &[u32], out: &mut [u32], double: &mut [f64]) {
    let i = global_id().x;
    if i < tags.len() {
        let tagged = f32::from_bits(0x7fc0_0000 | tags[i]);
        out[i] = tagged.to_bits();
        double[i] = if tagged.is_nan() { f64::NAN } else { 1.0 };
    }
}

fn numbers_that_are_none(jit: &Jit) -> Outcome {
    let tags = [0, 1, 0x3f_ffff];
    let (mut out, mut double) = (jit.zeros::<u32>(3)?, jit.zeros::<f64>(3)?);
    none.launch(jit, (1, 32), &jit.upload(&tags)?, &mut out, &mut double)?;
    assert_eq!(out.to_vec()?, tags.map(|tag| 0x7fc0_0000 | tag));
    assert!(double.to_vec()?.into_iter().all(f64::is_nan));
    Ok(())
}
