//! Arithmetic that is rounded in a direction, at all edges, beside what the host computes and beside bounds of the exact
//! results.

use kiln::prelude::*;
use kiln::stdlib::math::directed::*;

use super::warp::noise;
use super::{Outcome, chapter};

chapter![
    every_edge,
    between_two_floats,
    by_the_builder,
    integers_in_fewer_digits,
    doubles_in_fewer_digits,
];

/// Down, up, and towards 0 of each operation.
#[device_fn]
fn all<T: Float>(x: T, y: T, z: T) -> [[T; 3]; 5] {
    [
        [add_down(x, y), add_up(x, y), add_toward_zero(x, y)],
        [mul_down(x, y), mul_up(x, y), mul_toward_zero(x, y)],
        [div_down(x, y), div_up(x, y), div_toward_zero(x, y)],
        [
            mul_add_down(x, y, z),
            mul_add_up(x, y, z),
            mul_add_toward_zero(x, y, z),
        ],
        [sqrt_down(x), sqrt_up(x), sqrt_toward_zero(x)],
    ]
}

#[kernel]
fn each<T: Float>(x: &[T], y: &[T], z: &[T], out: &mut [[[T; 3]; 5]]) {
    let i = global_id().x;
    if i < x.len() {
        out[i] = all(x[i], y[i], z[i]);
    }
}

/// All pairs of some numbers, with a third for each.
fn triples<T: Copy>(numbers: &[T]) -> [Vec<T>; 3] {
    let n = numbers.len();
    let of = |at: &dyn Fn(usize) -> usize| (0..n * n).map(|i| numbers[at(i)]).collect();
    [
        of(&|i| i / n),
        of(&|i| i % n),
        of(&|i| (i / n + 5 * (i % n) + 3) % n),
    ]
}

fn computed<T: Float + KernelType>(jit: &Jit, numbers: &[T]) -> kiln::Result<Vec<[[T; 3]; 5]>> {
    let [x, y, z] = triples(numbers);
    let mut out = jit.upload(&vec![[[T::ZERO; 3]; 5]; x.len()])?;
    let inputs = [jit.upload(&x)?, jit.upload(&y)?, jit.upload(&z)?];
    let grid = grid_for(x.len(), 64);
    each.launch(
        jit,
        (grid, 64),
        &inputs[0],
        &inputs[1],
        &inputs[2],
        &mut out,
    )?;
    out.to_vec()
}

fn check<T: Float + KernelType>(jit: &Jit, numbers: &[T], bits: fn(T) -> u64) -> Outcome {
    let [x, y, z] = triples(numbers);
    for (i, found) in computed(jit, numbers)?.into_iter().enumerate() {
        let wanted = all(x[i], y[i], z[i]);
        for (op, (found, wanted)) in found.into_iter().zip(wanted).enumerate() {
            for (way, (found, wanted)) in found.into_iter().zip(wanted).enumerate() {
                let (is_nan, no_number) = (found.is_nan(), wanted.is_nan());
                assert!(
                    bits(found) == bits(wanted) || (is_nan && no_number),
                    "{} {} {}: operation {op}, way {way}: {found} instead of {wanted}",
                    x[i],
                    y[i],
                    z[i]
                );
            }
        }
    }
    Ok(())
}

fn singles() -> Vec<f32> {
    let positive = [
        0.0,
        1e-45,
        3e-45,
        f32::MIN_POSITIVE,
        1.1754942e-38,
        1e-20,
        0.1,
        1.0,
        1.0000001,
        3.0,
        16_777_217.0,
        1.8446743e19,
        2.5e30,
        f32::MAX,
        f32::INFINITY,
    ];
    let all = positive.into_iter().flat_map(|x| [x, -x]);
    let random = (0..12)
        .map(|i| f32::from_bits(noise(i)))
        .filter(|x| x.is_finite());
    all.chain([f32::NAN]).chain(random).collect()
}

fn doubles() -> Vec<f64> {
    let own = [
        5e-324,
        f64::MIN_POSITIVE,
        1e-170,
        0.1,
        1.0 + f64::EPSILON,
        1e200,
        f64::MAX,
    ];
    let all = own.into_iter().flat_map(|x| [x, -x]);
    let random =
        (0..12).map(|i| f64::from_bits(u64::from(noise(i)) << 32 | u64::from(noise(i + 50))));
    let random = random.filter(|x| x.is_finite());
    all.chain(singles().into_iter().map(f64::from))
        .chain(random)
        .collect()
}

fn every_edge(jit: &Jit) -> Outcome {
    check(jit, &singles(), |x| x.to_bits().into())?;
    check(jit, &doubles(), f64::to_bits)
}

/// The sign of what `f32`'s result lies below the exact one, by sums and products in `f64` of which nothing is lost.
fn between_two_floats(jit: &Jit) -> Outcome {
    // Sums of two floats and what `f64` loses of them (D. E. Knuth).
    fn sum(a: f64, b: f64) -> (f64, f64) {
        let sum = a + b;
        let part = sum - a;
        (sum, (a - (sum - part)) + (b - part))
    }
    let plain: Vec<f32> = singles().into_iter().filter(|x| x.is_finite()).collect();
    let [x, y, z] = triples(&plain);
    for (i, found) in computed(jit, &plain)?.into_iter().enumerate() {
        let (a, b, c) = (f64::from(x[i]), f64::from(y[i]), f64::from(z[i]));
        let exact = [sum(a, b), (a * b, 0.0), sum(a * b, c)];
        for (op, (near, rest)) in [0, 1, 3].into_iter().zip(exact) {
            let [down, up, zero] = found[op];
            let below = |x: f32| (f64::from(x), 0.0) <= (near, rest);
            let above = |x: f32| (f64::from(x), 0.0) >= (near, rest);
            assert!(below(down) && above(up), "{a} {b} {c} {op}: {down} {up}");
            // No float is between the two, and none at all where the result is one.
            let is_exact = rest == 0.0 && f64::from(near as f32) == near;
            let next = if is_exact { down } else { down.next_up() };
            assert!(up == next, "{a} {b} {c} {op}: {down} {up}");
            assert_eq!(zero, if near < 0.0 { up } else { down });
        }
        // A quotient and a root by what they give when multiplied.
        let [down, up, _] = found[2].map(f64::from);
        if b != 0.0 && down.is_finite() && up.is_finite() {
            assert!(
                (down * b - a) * b <= 0.0 && (up * b - a) * b >= 0.0,
                "{a} / {b}"
            );
        }
        let [down, up, _] = found[4].map(f64::from);
        if a >= 0.0 {
            assert!(down * down <= a && up * up >= a, "root of {a}");
        }
    }
    around_the_nearest(jit)
}

/// What is rounded down or up is the nearest double or the one next to that.
fn around_the_nearest(jit: &Jit) -> Outcome {
    let plain: Vec<f64> = doubles().into_iter().filter(|x| x.is_finite()).collect();
    let [x, y, z] = triples(&plain);
    for (i, found) in computed(jit, &plain)?.into_iter().enumerate() {
        let (a, b, c) = (x[i], y[i], z[i]);
        let nearest = [a + b, a * b, a / b, a.mul_add(b, c), a.sqrt()];
        for (op, near) in nearest.into_iter().enumerate() {
            let [down, up, _] = found[op];
            let is_one = (down == near || down == near.next_down())
                && (up == near || up == near.next_up())
                && (up == down || up == down.next_up());
            assert!(near.is_nan() || is_one, "{a} {b} {c} {op}: {down} {up}");
        }
    }
    Ok(())
}

fn by_the_builder(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("directed", |k| {
        let x = k.slice_mut("x", Type::F64);
        let third = k.div_up(x.at(0), 3.0);
        x.at(1).set(k.mul_down(third, k.div_down(x.at(0), 3.0)));
        x.at(2)
            .set(k.mul_add_toward_zero(third, third, k.sqrt_up(k.add_up(x.at(0), 1e-20))));
    })?;
    let mut x = jit.upload(&[1.0f64, 0.0, 0.0])?;
    jit.launch(&kernel, 1, 1, args!(&mut x))?;
    let third = div_up(1.0f64, 3.0);
    let wanted = [
        1.0,
        mul_down(third, third.next_down()),
        mul_add_toward_zero(third, third, sqrt_up(1.0f64.next_up())),
    ];
    assert_eq!(x.to_vec()?, wanted);
    Ok(())
}

/// Down, up, and towards 0: an `f32` and, of 64 bits, an `f64` of each.
#[device_fn]
fn shorter<T: Int>(x: T) -> [f32; 3] {
    [
        int_to_f32_down(x),
        int_to_f32_up(x),
        int_to_f32_toward_zero(x),
    ]
}

#[kernel]
fn integers(
    x: &[u64],
    words: &mut [[[f32; 3]; 2]],
    longs: &mut [[[f32; 3]; 2]],
    doubles: &mut [[[f64; 3]; 2]],
) {
    let i = global_id().x;
    if i < x.len() {
        let (word, long) = (x[i] as u32, x[i]);
        words[i] = [shorter(word as i32), shorter(word)];
        longs[i] = [shorter(long as i64), shorter(long)];
        let signed = long as i64;
        doubles[i] = [
            [
                int_to_f64_down(signed),
                int_to_f64_up(signed),
                int_to_f64_toward_zero(signed),
            ],
            [
                int_to_f64_down(long),
                int_to_f64_up(long),
                int_to_f64_toward_zero(long),
            ],
        ];
    }
}

/// Integers of few digits and many, at the limits of their types and of what floats have exactly.
fn long_integers() -> Vec<u64> {
    let edges = (0..64).flat_map(|bit| {
        let power = 1u64 << bit;
        let ones = (power - 1) << (63 - bit);
        [
            power,
            power - 1,
            power + 1,
            power.wrapping_neg(),
            ones,
            !ones,
        ]
    });
    let ties = [
        0x100_0001,
        0x100_0003,
        0x20_0000_0000_0001,
        0x7fff_ffbf,
        0x7fff_ffc1,
    ];
    let random =
        (0..64).map(|i| (u64::from(noise(i)) << 32 | u64::from(noise(i + 99))) >> (i % 50));
    edges.chain(ties).chain(random).collect()
}

/// Whether three floats are an integer rounded down, up and towards 0; `exact` has the value of a float that is one.
fn are_around<T: Float>(
    [down, up, zero]: [T; 3],
    x: i128,
    exact: fn(T) -> i128,
    next: fn(T) -> T,
) -> bool {
    let is_around = exact(down) <= x && x <= exact(up);
    let are_next = match exact(down) == x {
        true => up == down,
        false => up == next(down),
    };
    is_around && are_next && zero == if x < 0 { up } else { down }
}

fn integers_in_fewer_digits(jit: &Jit) -> Outcome {
    let x = long_integers();
    let (mut words, mut longs) = (
        jit.upload(&vec![[[0f32; 3]; 2]; x.len()])?,
        jit.upload(&vec![[[0f32; 3]; 2]; x.len()])?,
    );
    let mut doubles = jit.upload(&vec![[[0f64; 3]; 2]; x.len()])?;
    let grid = grid_for(x.len(), 64);
    let input = jit.upload(&x)?;
    integers.launch(
        jit,
        (grid, 64),
        &input,
        &mut words,
        &mut longs,
        &mut doubles,
    )?;
    let (words, longs, doubles) = (words.to_vec()?, longs.to_vec()?, doubles.to_vec()?);
    let single = |found, x| are_around(found, x, |f: f32| f as i128, f32::next_up);
    let double = |found, x| are_around(found, x, |f: f64| f as i128, f64::next_up);
    for (i, &x) in x.iter().enumerate() {
        let (word, signed) = (x as u32, x as i64);
        assert!(
            single(words[i][0], i128::from(word as i32)),
            "{word:#x}: {:?}",
            words[i]
        );
        assert!(
            single(words[i][1], i128::from(word)),
            "{word:#x}: {:?}",
            words[i]
        );
        assert!(
            single(longs[i][0], i128::from(signed)),
            "{x:#x}: {:?}",
            longs[i]
        );
        assert!(single(longs[i][1], i128::from(x)), "{x:#x}: {:?}", longs[i]);
        assert!(
            double(doubles[i][0], i128::from(signed)),
            "{x:#x}: {:?}",
            doubles[i]
        );
        assert!(
            double(doubles[i][1], i128::from(x)),
            "{x:#x}: {:?}",
            doubles[i]
        );
    }
    Ok(())
}

#[kernel]
fn narrow(x: &[f64], out: &mut [[f32; 3]]) {
    let i = global_id().x;
    if i < x.len() {
        out[i] = [
            f64_to_f32_down(x[i]),
            f64_to_f32_up(x[i]),
            f64_to_f32_toward_zero(x[i]),
        ];
    }
}

fn doubles_in_fewer_digits(jit: &Jit) -> Outcome {
    let near = |x: f32| {
        [
            f64::from(x),
            f64::from(x).next_up(),
            f64::from(x).next_down(),
        ]
    };
    let edges = singles().into_iter().flat_map(near);
    let x: Vec<f64> = doubles().into_iter().chain(edges).collect();
    let mut out = jit.upload(&vec![[0f32; 3]; x.len()])?;
    narrow.launch(jit, (grid_for(x.len(), 64), 64), &jit.upload(&x)?, &mut out)?;
    for (&x, [down, up, zero]) in x.iter().zip(out.to_vec()?) {
        if x.is_nan() {
            assert!(down.is_nan() && up.is_nan() && zero.is_nan());
            continue;
        }
        assert!(
            f64::from(down) <= x && x <= f64::from(up),
            "{x}: {down} {up}"
        );
        let next = if f64::from(down) == x {
            down
        } else {
            down.next_up()
        };
        assert_eq!(
            up.to_bits(),
            next.to_bits() | (x.to_bits() >> 32) as u32 & 1 << 31,
            "{x}"
        );
        let toward = if x < 0.0 { up } else { down };
        assert_eq!(zero.to_bits(), toward.to_bits(), "{x}");
    }
    Ok(())
}
