//! How far functions of `f32` are from the exact results, and of `f64` those of which the platform's are no references:
//! near 1, hyperbolic functions, roots, logarithms to a base, the gamma function and those of the normal distribution.
//!
//! Of `f32` the references are the platform's functions of `f64`. Of `f64` they are points in `math/references.txt`,
//! whose results mpmath has computed with 1500 bits, those of `erf_inv` with 400, and rounded to the nearest `f64`, and exact
//! remainders: a function, the bits of its arguments, those of its result.

use kiln::prelude::*;
use kiln::stdlib::math::FloatOps;

use super::math::{
    OfTwo, apply_to_pairs, devices, doubles, error_double, error_single, same, singles, spread,
    worst,
};
use super::math_rows::{FUNCTIONS, Tried, find};

/// Second arguments: as far from the first as chance has it, or about as large.
pub(super) fn others(x: &[f32]) -> Vec<f32> {
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
    for f in FUNCTIONS {
        let results = apply_to_pairs(&jit, f.kiln, &x, &y)?;
        let exact = |i: usize| (f.host)(x[i].into(), y[i].into());
        let errors = results
            .iter()
            .enumerate()
            .map(|(i, &r)| error_single(r, exact(i)));
        let (error, at) = worst(&(0..x.len()).collect::<Vec<_>>(), errors);
        println!("{} f32: {error:.3} at {:e}, {:e}", f.name, x[at], y[at]);
        if error > f.bounds[0] {
            wrong.push(format!(
                "{} of {:e}, {:e}: {error} ulp",
                f.name, x[at], y[at]
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// Functions that the host has from the library: they are as near as a kernel's.
pub(super) const OWN_ON_HOST: [&str; 13] = [
    "erf",
    "erfc",
    "sin_pi",
    "cos_pi",
    "erfcx",
    "erf_inv",
    "erfc_inv",
    "normcdf",
    "normcdf_inv",
    "remainder",
    "gamma",
    "ln_gamma",
    "ln_gamma_of_negative",
];

/// The arguments of a function among the references, and its results.
pub(super) fn references(name: &str) -> [Vec<f64>; 3] {
    let text = include_str!("math/references.txt");
    let bits = |word: &str| f64::from_bits(u64::from_str_radix(word, 16).expect("bits"));
    let mut of = [const { Vec::new() }; 3];
    for line in text.lines() {
        let point = match *line.split(' ').collect::<Vec<_>>() {
            [function, x, result] if function == name => [bits(x), 1.0, bits(result)],
            [function, x, y, result] if function == name => [x, y, result].map(bits),
            _ => continue,
        };
        for (list, number) in of.iter_mut().zip(point) {
            list.push(number);
        }
    }
    assert!(of[0].len() >= 40, "{name} has {} points", of[0].len());
    of
}

/// Each is the nearest number or one beside it, of some functions one near it, on both devices; so is the host's.
#[test]
fn doubles_are_those_of_mpmath() -> kiln::Result<()> {
    let mut wrong = Vec::new();
    for f in FUNCTIONS.iter().filter(|f| f.tried == Tried::Recorded) {
        let [x, y, wanted] = references(f.name);
        let of_host = (0..x.len()).map(|i| (f.host)(x[i], y[i])).collect();
        let [compiled, interpreted] = devices().map(|jit| apply_to_pairs(&jit, f.kiln, &x, &y));
        let who = [
            ("compiled", compiled?),
            ("interpreted", interpreted?),
            ("the host", of_host),
        ];
        for (who, results) in who {
            if who == "the host" && !OWN_ON_HOST.contains(&f.name) {
                continue;
            }
            let errors = results
                .iter()
                .zip(&wanted)
                .map(|(&r, &w)| error_double(r, w));
            let (error, at) = worst(&(0..x.len()).collect::<Vec<_>>(), errors);
            println!("{} {who}: {error} at {:e}, {:e}", f.name, x[at], y[at]);
            if error > f.bounds[1] {
                wrong.push(format!(
                    "{who}: {} of {:e}, {:e} is {:e}, not {:e}: {error} ulp",
                    f.name, x[at], y[at], results[at], wanted[at]
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// Near its zeros what is lost of the logarithm of a negative number's gamma function is that of a number around 1.
#[test]
fn logarithms_of_negative_numbers_gamma_are_near() -> kiln::Result<()> {
    let [x, y, wanted] = references("ln_gamma_of_negative");
    let narrow = |list: &[f64]| list.iter().map(|&x| x as f32).collect::<Vec<f32>>();
    let (narrow_x, narrow_y) = (narrow(&x), narrow(&y));
    let f: OfTwo = |x, _| x.ln_gamma().field("0");
    for jit in devices() {
        let doubles = apply_to_pairs(&jit, f, &x, &y)?;
        let singles = apply_to_pairs(&jit, f, &narrow_x, &narrow_y)?;
        let (mut of_doubles, mut of_singles) = (0.0f64, 0.0f64);
        for i in 0..x.len() {
            let size = wanted[i]
                .abs()
                .max(FloatOps::ln_gamma(-x[i]).0.abs())
                .max(1.0);
            for result in [doubles[i], FloatOps::ln_gamma(x[i]).0] {
                of_doubles = of_doubles.max((result - wanted[i]).abs() / size / f64::EPSILON);
            }
            let (wanted, _) = FloatOps::ln_gamma(f64::from(narrow_x[i]));
            if wanted.is_finite() {
                let off = (f64::from(singles[i]) - wanted).abs() / size;
                of_singles = of_singles.max(off / f64::from(f32::EPSILON));
            }
        }
        println!("ln_gamma of negative numbers: {of_singles:.3}, {of_doubles:.3}");
        assert!(
            of_doubles <= 8.0 && of_singles <= 8.0,
            "{of_singles}, {of_doubles}"
        );
    }
    Ok(())
}

/// Next to a negative integer the gamma function is large beside what it is between two, where it may be subnormal.
#[test]
fn gamma_next_to_negative_integers() -> kiln::Result<()> {
    let f = find("gamma");
    let integers = (1..200).map(|n| -f64::from(n));
    let single = |n: f64| [(n as f32).next_up(), (n as f32).next_down()];
    let singles: Vec<f32> = integers.clone().take(60).flat_map(single).collect();
    let doubles: Vec<f64> = integers
        .flat_map(|n| [n.next_up(), n.next_down()])
        .collect();
    for jit in devices() {
        let results = apply_to_pairs(&jit, f.kiln, &singles, &singles)?;
        for (&x, result) in singles.iter().zip(results) {
            let wanted = (f.host)(x.into(), 0.0);
            let error = error_single(result, wanted);
            assert!(error <= f.bounds[0], "{x:e}: {result:e}, not {wanted:e}");
        }
        // The host has other roundings.
        let results = apply_to_pairs(&jit, f.kiln, &doubles, &doubles)?;
        for (&x, result) in doubles.iter().zip(results) {
            let wanted = (f.host)(x, 0.0);
            let error = error_double(result, wanted);
            assert!(
                error <= 2.0 * f.bounds[1],
                "{x:e}: {result:e}, not {wanted:e}"
            );
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
        for f in FUNCTIONS {
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
                let is_near = error_single(result, wanted) <= f.bounds[0]
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
    for f in FUNCTIONS {
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
