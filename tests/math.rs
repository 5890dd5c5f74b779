//! How far the mathematical functions are from the exact results, and their special values.
//!
//! The references are the platform's functions: for `f32` those of `f64`, for `f64` those of
//! `f64`, which `math_exact` compares with MPFR's. A sample of each exponent is tried, not all numbers.

use kiln::prelude::*;

use super::math_rows::{FUNCTIONS, Function, Tried, find};

/// Applies a function to all values.
fn apply<T: KernelType>(jit: &Jit, f: &Function, values: &[T]) -> kiln::Result<Vec<T>> {
    apply_to_pairs(jit, f.kiln, values, values)
}

/// A function of two numbers.
pub(super) type OfTwo = for<'k> fn(Val<'k>, Val<'k>) -> Val<'k>;

/// Applies the power to all pairs.
fn apply_powf<T: KernelType>(jit: &Jit, bases: &[T], exponents: &[T]) -> kiln::Result<Vec<T>> {
    apply_to_pairs(jit, |x, y| x.powf(y), bases, exponents)
}

/// Applies a function to all pairs.
pub(super) fn apply_to_pairs<T: KernelType>(
    jit: &Jit,
    f: OfTwo,
    bases: &[T],
    exponents: &[T],
) -> kiln::Result<Vec<T>> {
    let kernel = Kernel::build("of_pairs", |k| {
        let t = k.ty::<T>();
        let (x, y) = (k.slice("x", t), k.slice("y", t));
        let r = k.slice_mut("r", t);
        let i = k.global_id().x();
        k.if_(i.lt(x.len()), || {
            r.at(i).set(f(x.at(i).get(), y.at(i).get()))
        });
    })?;
    let (x, y) = (jit.upload(bases)?, jit.upload(exponents)?);
    let mut r = jit.upload(bases)?;
    let grid = grid_for(bases.len(), 256);
    jit.launch(&kernel, grid, 256, args!(&x, &y, &mut r))?;
    r.to_vec()
}

/// A bijection of integers that spreads them (the finalizer of SplitMix64).
pub(super) fn spread(seed: u64) -> u64 {
    let mut z = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// `count` values for each exponent of `f32`, of both signs.
pub(super) fn singles(count: u64) -> Vec<f32> {
    let of = |exponent: u64| {
        (0..count).map(move |i| {
            let random = spread(exponent << 32 | i);
            let bits = (random as u32 & 0x807f_ffff) | (exponent as u32) << 23;
            f32::from_bits(bits)
        })
    };
    (0..255).flat_map(of).collect()
}

/// `count` values for each exponent of `f64`, of both signs.
pub(super) fn doubles(count: u64) -> Vec<f64> {
    let of = |exponent: u64| {
        (0..count).map(move |i| {
            let random = spread(exponent << 32 | i);
            f64::from_bits((random & 0x800f_ffff_ffff_ffff) | exponent << 52)
        })
    };
    (0..2047).flat_map(of).collect()
}

/// The error of an `f32` in units in the last place of the exact result.
pub(super) fn error_single(result: f32, exact: f64) -> f64 {
    let rounded = exact as f32;
    if result.is_nan() && exact.is_nan() || result == rounded {
        return 0.0;
    }
    if !rounded.is_finite() || !result.is_finite() {
        return f64::INFINITY;
    }
    let below = f32::from_bits(rounded.abs().to_bits().saturating_sub(1));
    let unit = f64::from(rounded.abs()) - f64::from(below);
    let unit = if unit == 0.0 {
        f64::from(f32::from_bits(1))
    } else {
        unit
    };
    (f64::from(result) - exact).abs() / unit
}

/// The distance of an `f64` from the reference in units in the last place.
pub(super) fn error_double(result: f64, reference: f64) -> f64 {
    if result.is_nan() && reference.is_nan() || result == reference {
        return 0.0;
    }
    let ordered = |x: f64| {
        let bits = x.to_bits() as i64;
        i128::from(if bits < 0 { i64::MIN - bits } else { bits })
    };
    (ordered(result) - ordered(reference)).abs() as f64
}

/// The largest error and where it is.
pub(super) fn worst<T: Copy>(values: &[T], errors: impl Iterator<Item = f64>) -> (f64, T) {
    let first = (0.0, values[0]);
    values
        .iter()
        .zip(errors)
        .fold(first, |worst, (&value, error)| {
            if error > worst.0 {
                (error, value)
            } else {
                worst
            }
        })
}

#[test]
fn doubles_are_near_the_host() -> kiln::Result<()> {
    let jit = Jit::on(Device::cpu());
    let mut wrong = Vec::new();
    let (x, y) = (doubles(256), doubles(256).into_iter().rev());
    let y: Vec<f64> = y.collect();
    for f in FUNCTIONS.iter().filter(|f| f.tried == Tried::Host) {
        let results = apply_to_pairs(&jit, f.kiln, &x, &y)?;
        let exact = |i: usize| (f.host)(x[i], y[i]);
        let errors = results.iter().enumerate();
        let errors = errors.map(|(i, &r)| error_double(r, exact(i)));
        let (error, at) = worst(&x, errors);
        println!("{} f64: {error:.3} at {at:e}", f.name);
        if error > f.bounds[1] {
            wrong.push(format!("{} of {at:e}: {error} ulp", f.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// Pairs whose powers are finite, mostly.
pub(super) fn powers(count: u64) -> Vec<(f64, f64)> {
    (0..count)
        .map(|i| {
            let (a, b, c) = (spread(3 * i), spread(3 * i + 1), spread(3 * i + 2));
            let unit = |bits: u64| (bits >> 11) as f64 / (1u64 << 53) as f64;
            let base = ((unit(a) - 0.5) * 200.0).exp2();
            let base = if c & 3 == 0 {
                0.9 + unit(a) * 0.2
            } else {
                base
            };
            let bound = 88.0 / base.ln().abs().max(1e-3);
            (base, (unit(b) - 0.5) * 2.0 * bound)
        })
        .collect()
}

#[test]
fn powers_are_within_bounds() -> kiln::Result<()> {
    let jit = Jit::on(Device::cpu());
    let bounds = find("powf").bounds;
    let pairs = powers(1 << 18);
    let (bases, exponents): (Vec<f32>, Vec<f32>) =
        pairs.iter().map(|&(x, y)| (x as f32, y as f32)).unzip();
    let results = apply_powf(&jit, &bases, &exponents)?;
    let exact = |i: usize| f64::from(bases[i]).powf(exponents[i].into());
    let errors = results
        .iter()
        .enumerate()
        .map(|(i, &r)| error_single(r, exact(i)));
    let (error, at) = worst(&(0..bases.len()).collect::<Vec<_>>(), errors);
    println!(
        "powf f32: {error:.3} at {:e} ^ {:e}",
        bases[at], exponents[at]
    );
    assert!(
        error <= bounds[0],
        "{error} ulp at {:e} ^ {:e}",
        bases[at],
        exponents[at]
    );

    let (bases, exponents): (Vec<f64>, Vec<f64>) =
        pairs.into_iter().map(|(x, y)| (x, y * 7.9)).unzip();
    let results = apply_powf(&jit, &bases, &exponents)?;
    let exact = |i: usize| bases[i].powf(exponents[i]);
    let errors = results
        .iter()
        .enumerate()
        .map(|(i, &r)| error_double(r, exact(i)));
    let (error, at) = worst(&(0..bases.len()).collect::<Vec<_>>(), errors);
    println!(
        "powf f64: {error:.3} at {:e} ^ {:e}",
        bases[at], exponents[at]
    );
    assert!(
        error <= bounds[1],
        "{error} ulp at {:e} ^ {:e}",
        bases[at],
        exponents[at]
    );
    Ok(())
}

#[test]
fn angles_are_within_bounds() -> kiln::Result<()> {
    let [jit, interpreted] = devices();
    let bounds = find("atan2").bounds;
    let unit = |bits: u64| (bits >> 11) as f64 / (1u64 << 53) as f64 - 0.5;
    let coordinate = |i: u64| unit(spread(i)) * (40.0 * unit(spread(i ^ 0xffff))).exp2();
    let count = 1 << 18;
    let edges = [0.0, 1.0, 3e38, 1e-40, INF, NAN].map(|x| [x, -x]);
    let edges = edges.as_flattened();
    let of_edges = edges.iter().flat_map(|y| edges.iter().map(|x| (*y, *x)));
    let random = (0..count).map(|i| (coordinate(2 * i), coordinate(2 * i + 1)));
    let (ys, xs): (Vec<f64>, Vec<f64>) = of_edges.chain(random).unzip();
    let f: OfTwo = |y, x| y.atan2(x);
    let doubles = apply_to_pairs(&jit, f, &ys, &xs)?;
    let narrow = |list: &[f64]| list.iter().map(|x| *x as f32).collect::<Vec<f32>>();
    let (narrow_ys, narrow_xs) = (narrow(&ys), narrow(&xs));
    let singles = apply_to_pairs(&jit, f, &narrow_ys, &narrow_xs)?;
    let (mut of_doubles, mut of_singles) = (0.0f64, 0.0f64);
    for i in 0..ys.len() {
        let wanted = ys[i].atan2(xs[i]);
        let error = error_double(doubles[i], wanted);
        assert!(
            error <= bounds[1],
            "atan2({:e}, {:e}) is {:e}, not {wanted:e}",
            ys[i],
            xs[i],
            doubles[i]
        );
        let sign = |x: f64| x.is_nan() || x.is_sign_positive();
        assert_eq!(
            sign(doubles[i]),
            sign(wanted),
            "atan2({:e}, {:e})",
            ys[i],
            xs[i]
        );
        let (y, x) = (f64::from(narrow_ys[i]), f64::from(narrow_xs[i]));
        let wanted = y.atan2(x);
        let single = error_single(singles[i], wanted);
        assert!(
            single <= bounds[0],
            "f32 atan2({y:e}, {x:e}) is {:e}, not {wanted:e}",
            singles[i]
        );
        assert_eq!(
            sign(singles[i].into()),
            sign(wanted),
            "f32 atan2({y:e}, {x:e})"
        );
        (of_doubles, of_singles) = (of_doubles.max(error), of_singles.max(single));
    }
    println!("atan2: {of_singles:.3}, {of_doubles:.3}");
    let bits = |list: Vec<f64>| -> Vec<u64> {
        let bits = |x: f64| if x.is_nan() { 0 } else { x.to_bits() };
        list.into_iter().map(bits).collect()
    };
    let some = ..2000;
    let again = apply_to_pairs(&interpreted, f, &ys[some], &xs[some])?;
    assert_eq!(bits(again), bits(doubles[some].to_vec()));
    Ok(())
}

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

/// Arguments at the edges of each function, with the results (C23, Annex F.10).
const EDGES: &[(&str, &[(f64, f64)])] = &[
    (
        "exp",
        &[
            (0.0, 1.0),
            (-0.0, 1.0),
            (INF, INF),
            (-INF, 0.0),
            (1e30, INF),
            (-1e30, 0.0),
            (NAN, NAN),
        ],
    ),
    (
        "exp2",
        &[
            (0.0, 1.0),
            (10.0, 1024.0),
            (-126.0, 1.1754943508222875e-38),
            (-149.0, 1.401298464324817e-45),
            (INF, INF),
            (-INF, 0.0),
            (1e30, INF),
            (-1e30, 0.0),
            (NAN, NAN),
        ],
    ),
    (
        "ln",
        &[
            (1.0, 0.0),
            (0.0, -INF),
            (-0.0, -INF),
            (-1.0, NAN),
            (INF, INF),
            (-INF, NAN),
            (NAN, NAN),
        ],
    ),
    (
        "log2",
        &[
            (1.0, 0.0),
            (0.5, -1.0),
            (1024.0, 10.0),
            (1.401298464324817e-45, -149.0),
            (0.0, -INF),
            (-1.0, NAN),
            (INF, INF),
            (NAN, NAN),
        ],
    ),
    (
        "log10",
        &[
            (1.0, 0.0),
            (1000.0, 3.0),
            (0.0, -INF),
            (-1.0, NAN),
            (INF, INF),
            (NAN, NAN),
        ],
    ),
    (
        "sin",
        &[
            (0.0, 0.0),
            (-0.0, -0.0),
            (INF, NAN),
            (-INF, NAN),
            (NAN, NAN),
        ],
    ),
    (
        "cos",
        &[(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN), (NAN, NAN)],
    ),
    (
        "atan",
        &[
            (0.0, 0.0),
            (-0.0, -0.0),
            (INF, std::f64::consts::FRAC_PI_2),
            (-INF, -std::f64::consts::FRAC_PI_2),
            (NAN, NAN),
        ],
    ),
    (
        "asin",
        &[
            (0.0, 0.0),
            (-0.0, -0.0),
            (1.0, std::f64::consts::FRAC_PI_2),
            (-1.0, -std::f64::consts::FRAC_PI_2),
            (1.5, NAN),
            (-INF, NAN),
            (NAN, NAN),
        ],
    ),
    (
        "acos",
        &[
            (0.0, std::f64::consts::FRAC_PI_2),
            (1.0, 0.0),
            (-1.0, std::f64::consts::PI),
            (1.5, NAN),
            (-INF, NAN),
            (NAN, NAN),
        ],
    ),
    (
        "tanh",
        &[
            (0.0, 0.0),
            (-0.0, -0.0),
            (INF, 1.0),
            (-INF, -1.0),
            (50.0, 1.0),
            (-50.0, -1.0),
            (NAN, NAN),
        ],
    ),
];

/// Whether two numbers are the same, signs of zero included; NaN is NaN.
pub(super) fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

/// The devices of this machine that compute in ways of their own.
pub(super) fn devices() -> [Jit; 2] {
    let interpreter = kiln::core::runtime::CpuOptions::default().interpret(true);
    [
        Jit::on(Device::cpu()),
        Jit::on(Device::cpu_with(interpreter)),
    ]
}

#[test]
fn edges_are_those_of_c() -> kiln::Result<()> {
    for jit in devices() {
        for (name, edges) in EDGES {
            let f = find(name);
            let doubles: Vec<f64> = edges.iter().map(|e| e.0).collect();
            let singles: Vec<f32> = doubles.iter().map(|&x| x as f32).collect();
            let of_doubles = apply(&jit, f, &doubles)?;
            let of_singles = apply(&jit, f, &singles)?;
            for ((&(x, wanted), double), single) in edges.iter().zip(of_doubles).zip(of_singles) {
                assert!(
                    same(double, wanted),
                    "{name}({x:e}) is {double:e}, not {wanted:e}"
                );
                let wanted = f64::from(wanted as f32);
                assert!(
                    same(single.into(), wanted),
                    "f32 {name}({x:e}) is {single:e}"
                );
            }
        }
    }
    Ok(())
}

/// Where the exact sine is next to 1, roundings of a long polynomial may add up to more.
#[test]
fn sines_are_at_most_one() -> kiln::Result<()> {
    let jit = Jit::on(Device::cpu());
    let angles: Vec<f64> = (0..1u64 << 18)
        .map(|i| {
            let quarters = (i % 1024) as f64 - 512.0;
            let off = (spread(i) >> 40) as f64 * (-26.0 - (i % 37) as f64).exp2();
            quarters * std::f64::consts::FRAC_PI_2 + off
        })
        .collect();
    let narrow: Vec<f32> = angles.iter().map(|&x| x as f32).collect();
    for f in FUNCTIONS
        .iter()
        .filter(|f| ["sin", "cos"].contains(&f.name))
    {
        let largest = |sizes: &mut dyn Iterator<Item = f64>| sizes.fold(0.0, f64::max);
        let doubles = apply(&jit, f, &angles)?;
        let singles = apply(&jit, f, &narrow)?;
        let name = f.name;
        assert_eq!(largest(&mut doubles.iter().map(|y| y.abs())), 1.0, "{name}");
        let sizes = &mut singles.iter().map(|y| f64::from(y.abs()));
        assert_eq!(largest(sizes), 1.0, "{name} of f32");
    }
    Ok(())
}

#[test]
fn powers_of_edges_are_those_of_c() -> kiln::Result<()> {
    let values = [
        0.0,
        0.5,
        1.0,
        1.5,
        2.0,
        3.0,
        4.0,
        1e9,
        3e38,
        1e-40,
        16_777_217.0,
        INF,
        NAN,
    ];
    let values: Vec<f64> = values.iter().flat_map(|&x| [x, -x]).collect();
    let pair = |&x: &f64| values.iter().map(move |&y| (x, y));
    let (bases, exponents): (Vec<f64>, Vec<f64>) = values.iter().flat_map(pair).unzip();
    let single = |x: &f64| *x as f32;
    let (narrow_bases, narrow): (Vec<f32>, Vec<f32>) = (
        bases.iter().map(single).collect(),
        exponents.iter().map(single).collect(),
    );
    for jit in devices() {
        let doubles = apply_powf(&jit, &bases, &exponents)?;
        let singles = apply_powf(&jit, &narrow_bases, &narrow)?;
        for (i, (&x, &y)) in bases.iter().zip(&exponents).enumerate() {
            let (result, wanted) = (doubles[i], x.powf(y));
            let exact = same(result, wanted)
                || error_double(result, wanted) <= 1.0 && result.signum() == wanted.signum();
            assert!(exact, "{x:e} ^ {y:e} is {result:e}, not {wanted:e}");
            let (result, wanted) = (singles[i], narrow_bases[i].powf(narrow[i]));
            let exact = same(result.into(), wanted.into())
                || error_single(result, wanted.into()) <= 1.0 && result.signum() == wanted.signum();
            assert!(exact, "f32 {x:e} ^ {y:e} is {result:e}, not {wanted:e}");
        }
    }
    Ok(())
}

/// All numbers there are; minutes a function.
#[test]
#[ignore = "takes a quarter of an hour in a release build"]
fn every_f32_is_within_bounds() -> kiln::Result<()> {
    let jit = Jit::on(Device::cpu());
    let mut wrong = Vec::new();
    for f in FUNCTIONS {
        let mut largest = (0.0, 0.0);
        for chunk in 0..256u32 {
            let values: Vec<f32> = (0..1 << 24)
                .map(|i| f32::from_bits(chunk << 24 | i))
                .collect();
            let results = apply(&jit, f, &values)?;
            let pairs = results.iter().zip(&values);
            let errors = pairs.map(|(&r, &x)| error_single(r, (f.host)(x.into(), x.into())));
            let (error, at) = worst(&values, errors);
            if error > largest.0 {
                largest = (error, at);
            }
        }
        println!("{}: {:.3} at {:e}", f.name, largest.0, largest.1);
        if largest.0 > f.bounds[0] {
            wrong.push(f.name);
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
    Ok(())
}
