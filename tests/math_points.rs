//! How far functions near 1, hyperbolic functions, roots and logarithms to a base are from the exact results, and their
//! special values.
//!
//! Of `f32` the references are the platform's functions of `f64`. Of `f64` they are points in `math/references.txt`,
//! whose results mpmath has computed with 1500 bits and rounded to the nearest `f64`: a function, the bits of its
//! arguments, those of its result.

use kiln::prelude::*;
use kiln::stdlib::math::FloatOps;

use super::math::{
    OfTwo, apply_to_pairs, devices, doubles, error_double, error_single, same, singles, spread,
    worst,
};

/// A function under test. Of one argument, the second one is anything.
struct Function {
    name: &'static str,
    kiln: OfTwo,
    host: fn(f64, f64) -> f64,
    /// The largest error for `f32`, in units in the last place.
    bound: f64,
    /// The largest distance from the nearest number, for `f64`.
    of_double: f64,
}

const FUNCTIONS: [Function; 13] = [
    Function {
        name: "exp_m1",
        kiln: |x, _| x.exp_m1(),
        host: |x, _| x.exp_m1(),
        bound: 1.5,
        of_double: 1.0,
    },
    Function {
        name: "ln_1p",
        kiln: |x, _| x.ln_1p(),
        host: |x, _| x.ln_1p(),
        bound: 1.5,
        of_double: 1.0,
    },
    Function {
        name: "exp10",
        kiln: |x, _| x.exp10(),
        host: |x, _| 10f64.powf(x),
        bound: 1.5,
        of_double: 1.0,
    },
    Function {
        name: "sinh",
        kiln: |x, _| x.sinh(),
        host: |x, _| x.sinh(),
        bound: 1.5,
        of_double: 1.0,
    },
    Function {
        name: "cosh",
        kiln: |x, _| x.cosh(),
        host: |x, _| x.cosh(),
        bound: 1.5,
        of_double: 1.0,
    },
    Function {
        name: "asinh",
        kiln: |x, _| x.asinh(),
        host: |x, _| x.asinh(),
        bound: 1.5,
        of_double: 1.0,
    },
    Function {
        name: "acosh",
        kiln: |x, _| x.acosh(),
        host: |x, _| x.acosh(),
        bound: 1.5,
        of_double: 1.0,
    },
    Function {
        name: "atanh",
        kiln: |x, _| x.atanh(),
        host: |x, _| x.abs().atanh().copysign(x),
        bound: 1.5,
        of_double: 1.0,
    },
    Function {
        name: "erf",
        kiln: |x, _| x.erf(),
        host: |x, _| FloatOps::erf(x),
        bound: 1.0,
        of_double: 1.0,
    },
    Function {
        name: "erfc",
        kiln: |x, _| x.erfc(),
        host: |x, _| FloatOps::erfc(x),
        bound: 4.0,
        of_double: 4.0,
    },
    Function {
        name: "cbrt",
        kiln: |x, _| x.cbrt(),
        host: |x, _| x.cbrt(),
        bound: 1.0,
        of_double: 1.0,
    },
    Function {
        name: "hypot",
        kiln: |x, y| x.hypot(y),
        host: |x, y| x.hypot(y),
        bound: 1.0,
        of_double: 1.0,
    },
    Function {
        name: "log",
        kiln: |x, y| x.log(y),
        host: |x, y| x.ln() / y.ln(),
        bound: 1.5,
        of_double: 1.0,
    },
];

/// Second arguments: as far from the first as chance has it, or about as large.
fn others(x: &[f32]) -> Vec<f32> {
    (0..)
        .zip(x)
        .map(|(i, &x)| match i % 3 {
            0 => f32::from_bits(spread(i) as u32 & 0x7fff_ffff),
            1 => x * (spread(i) % 1000) as f32 * 0.003,
            _ => 0.5 + (spread(i) % 1000) as f32 * 0.01,
        })
        .collect()
}

#[test]
fn singles_are_within_bounds() -> kiln::Result<()> {
    let jit = Jit::on(Device::cpu());
    let x = singles(2048);
    let y = others(&x);
    let mut wrong = Vec::new();
    for f in &FUNCTIONS {
        let results = apply_to_pairs(&jit, f.kiln, &x, &y)?;
        let exact = |i: usize| (f.host)(x[i].into(), y[i].into());
        let errors = results
            .iter()
            .enumerate()
            .map(|(i, &r)| error_single(r, exact(i)));
        let (error, at) = worst(&(0..x.len()).collect::<Vec<_>>(), errors);
        println!("{} f32: {error:.3} at {:e}, {:e}", f.name, x[at], y[at]);
        if error > f.bound {
            wrong.push(format!(
                "{} of {:e}, {:e}: {error} ulp",
                f.name, x[at], y[at]
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// Each is the nearest number or one beside it, of the complement one near it, on both devices; so is the host's.
#[test]
fn doubles_are_those_of_mpmath() -> kiln::Result<()> {
    let text = include_str!("math/references.txt");
    let bits = |word: &str| f64::from_bits(u64::from_str_radix(word, 16).expect("bits"));
    for f in &FUNCTIONS {
        let (mut x, mut y, mut wanted) = (Vec::new(), Vec::new(), Vec::new());
        for line in text.lines() {
            match *line.split(' ').collect::<Vec<_>>() {
                [name, a, result] if name == f.name => {
                    x.push(bits(a));
                    y.push(1.0);
                    wanted.push(bits(result));
                }
                [name, a, b, result] if name == f.name => {
                    x.push(bits(a));
                    y.push(bits(b));
                    wanted.push(bits(result));
                }
                _ => {}
            }
        }
        assert!(x.len() >= 40, "{} has {} points", f.name, x.len());
        for jit in devices() {
            let results = apply_to_pairs(&jit, f.kiln, &x, &y)?;
            let mut beside = 0;
            for (i, (&result, &wanted)) in results.iter().zip(&wanted).enumerate() {
                if f.name.starts_with("erf") {
                    assert!(error_double((f.host)(x[i], y[i]), wanted) <= f.of_double);
                }
                let error = error_double(result, wanted);
                beside += u32::from(error > 0.0);
                let (x, y) = (x[i], y[i]);
                assert!(
                    error <= f.of_double,
                    "{} of {x:e}, {y:e} is {result:e}, not {wanted:e}",
                    f.name
                );
            }
            println!("{}: {beside} of {} are beside the nearest", f.name, x.len());
        }
    }
    Ok(())
}

/// Zeros, infinities, NaN, subnormal numbers and the ends of domains: the platform's results, whose last bits may be
/// others.
#[test]
fn edges_are_those_of_the_host() -> kiln::Result<()> {
    let numbers = [
        0.0,
        1.0,
        0.5,
        2.0,
        10.0,
        1e-40,
        1e-45,
        5e-324,
        1e-310,
        1e-20,
        1e20,
        3e38,
        1e300,
        88.8,
        89.4,
        89.6,
        100.0,
        709.9,
        710.4,
        710.6,
        1e4,
        f64::INFINITY,
        f64::NAN,
        1.0 - f64::EPSILON,
        1.5,
        0.999_999_94,
    ];
    let numbers: Vec<f64> = numbers.iter().flat_map(|&x| [x, -x]).collect();
    let pair = |&x: &f64| numbers.iter().map(move |&y| (x, y));
    let (x, y): (Vec<f64>, Vec<f64>) = numbers.iter().flat_map(pair).unzip();
    let single = |x: &f64| *x as f32;
    let (narrow_x, narrow_y): (Vec<f32>, Vec<f32>) = (
        x.iter().map(single).collect(),
        y.iter().map(single).collect(),
    );
    for jit in devices() {
        for f in &FUNCTIONS {
            let of_doubles = apply_to_pairs(&jit, f.kiln, &x, &y)?;
            let of_singles = apply_to_pairs(&jit, f.kiln, &narrow_x, &narrow_y)?;
            for i in 0..x.len() {
                let (result, wanted) = (of_doubles[i], (f.host)(x[i], y[i]));
                let is_near = error_double(result, wanted) <= 8.0
                    && (wanted.is_nan() || result.is_sign_negative() == wanted.is_sign_negative());
                assert!(
                    same(result, wanted) || is_near,
                    "{} of {:e}, {:e} is {result:e}, not {wanted:e}",
                    f.name,
                    x[i],
                    y[i]
                );
                let result = of_singles[i];
                let wanted = (f.host)(narrow_x[i].into(), narrow_y[i].into());
                let is_near = error_single(result, wanted) <= f.bound
                    && (wanted.is_nan() || result.is_sign_negative() == wanted.is_sign_negative());
                assert!(
                    is_near,
                    "f32 {} of {:e}, {:e} is {result:e}, not {wanted:e}",
                    f.name, narrow_x[i], narrow_y[i]
                );
            }
        }
    }
    Ok(())
}

#[test]
fn both_devices_agree_to_the_bit() -> kiln::Result<()> {
    let (singles, doubles) = (singles(4), doubles(1));
    let more = others(&singles);
    let reversed: Vec<f64> = doubles.iter().rev().copied().collect();
    for f in &FUNCTIONS {
        let [compiled, interpreted] = devices().map(|jit| -> kiln::Result<_> {
            let single = |x: f32| if x.is_nan() { 0 } else { x.to_bits() };
            let double = |x: f64| if x.is_nan() { 0 } else { x.to_bits() };
            let of_singles = apply_to_pairs(&jit, f.kiln, &singles, &more)?;
            let of_doubles = apply_to_pairs(&jit, f.kiln, &doubles, &reversed)?;
            Ok((
                of_singles.into_iter().map(single).collect::<Vec<_>>(),
                of_doubles.into_iter().map(double).collect::<Vec<_>>(),
            ))
        });
        assert_eq!(compiled?, interpreted?, "{}", f.name);
    }
    Ok(())
}
