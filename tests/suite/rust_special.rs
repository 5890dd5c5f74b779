//! Functions of statistics, angles in half turns, and what Rust's floats lack of CUDA's, for floats of all sizes: near
//! what the host has, and exact where they are.

use half::{bf16, f16};
use kiln::prelude::*;
use kiln::stdlib::math::FloatOps;

use super::{Outcome, chapter};

chapter![near_the_host, special_values, signs_of_gamma];

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
