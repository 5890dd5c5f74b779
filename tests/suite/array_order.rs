//! Arrays in order, running sums and products: beside the host, for all types, lengths around the sizes of tiles, and dimensions.

use expect_test::expect;
use half::{bf16, f16};
use kiln::array::{NumberElement, SortElement, keep_dims};
use kiln::prelude::*;
use ndarray::{Array3, Axis};

use super::{Outcome, chapter};

chapter![
    whole_arrays_are_sorted,
    floats_are_sorted_with_nans_last,
    rows_and_columns_are_sorted,
    what_is_alike_stays_in_order,
    orders_by_a_comparison,
    structs_are_sorted_by_a_comparison,
    a_comparison_that_contradicts_itself,
    parts_by_a_mask,
    unique_elements,
    quantiles,
    long_running_sums,
    running_folds,
    folds_in_order,
    products_in_tiles,
];

/// A number of 64 bits without an order.
fn number(i: usize) -> u64 {
    (i as u64 + 1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .rotate_left(17)
}

/// Around the size of a tile, and less: of keys of 32 bits and of 64.
const LENGTHS: [usize; 5] = [0, 1, 33, 6144, 6145];
const LENGTHS_OF_WIDE: [usize; 3] = [100, 4096, 4097];
const SHORT: [usize; 1] = [100];

fn sorts<T: SortElement + Ord + std::fmt::Debug>(
    jit: &Jit,
    lengths: &[usize],
    value: fn(u64) -> T,
) -> Outcome {
    let arrays = Arrays::new(jit);
    for &n in lengths {
        let mut x: Vec<T> = (0..n).map(|i| value(number(i))).collect();
        let array = arrays.vector(x.clone())?;
        let sorted = array.sort(0)?.to_vec()?;
        let places = array.argsort(0)?.to_vec()?;
        let mut expected: Vec<u32> = (0..n as u32).collect();
        expected.sort_by_key(|at| x[*at as usize]);
        assert_eq!(places, expected, "{n}");
        x.sort();
        assert_eq!(sorted, x, "{n}");
    }
    Ok(())
}

fn whole_arrays_are_sorted(jit: &Jit) -> Outcome {
    sorts(jit, &LENGTHS, |n| n as u32)?;
    sorts(jit, &SHORT, |n| n as i32)?;
    sorts(jit, &SHORT, |n| n as u8)?;
    sorts(jit, &SHORT, |n| n as i8)?;
    sorts(jit, &SHORT, |n| n as u16)?;
    sorts(jit, &SHORT, |n| n as i16)?;
    sorts(jit, &LENGTHS_OF_WIDE, |n| n)?;
    sorts(jit, &SHORT, |n| n as i64)
}

/// Floats of all bits, as a list that is in the order of NumPy: by value, and NaNs at the end.
fn sorts_floats<T: SortElement + PartialOrd>(
    jit: &Jit,
    value: fn(u64) -> T,
    wide: fn(T) -> f64,
) -> Outcome {
    let arrays = Arrays::new(jit);
    for n in [5, 1000] {
        let x: Vec<T> = (0..n).map(|i| value(number(i))).collect();
        let sorted = arrays.vector(x.clone())?.sort(0)?.to_vec()?;
        let sorted: Vec<f64> = sorted.into_iter().map(wide).collect();
        let numbers = sorted.iter().take_while(|x| !x.is_nan()).count();
        assert!(sorted[numbers..].iter().all(|x| x.is_nan()));
        assert!(sorted[..numbers].is_sorted());
        let mut expected: Vec<f64> = x.into_iter().map(wide).filter(|x| !x.is_nan()).collect();
        expected.sort_by(f64::total_cmp);
        let bits = |x: &[f64]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&sorted[..numbers]), bits(&expected));
    }
    Ok(())
}

fn floats_are_sorted_with_nans_last(jit: &Jit) -> Outcome {
    sorts_floats(jit, |n| f16::from_bits(n as u16), |x: f16| x.into())?;
    sorts_floats(jit, |n| bf16::from_bits(n as u16), |x: bf16| x.into())?;
    sorts_floats(jit, |n| f32::from_bits(n as u32), |x: f32| x.into())?;
    sorts_floats(jit, f64::from_bits, |x: f64| x)
}

fn rows_and_columns_are_sorted(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    for dims in [[1, 1, 1], [3, 5, 7], [300, 1, 2], [2, 0, 3]] {
        let n = dims.iter().product();
        let x: Vec<i32> = (0..n).map(|i| (number(i) >> 58) as i32 - 32).collect();
        let array = arrays.array(x.clone(), dims)?;
        for axis in 0..3 {
            let (sorted, places) = (array.sort(axis)?, array.argsort(axis)?);
            assert_eq!((sorted.dims(), places.dims()), (&dims[..], &dims[..]));
            let (sorted, places) = (sorted.to_vec()?, places.to_vec()?);
            let stride: usize = dims[axis as usize + 1..].iter().product();
            let length = dims[axis as usize];
            for start in (0..n).filter(|i| (i / stride).is_multiple_of(length)) {
                let row: Vec<i32> = (0..length).map(|i| x[start + i * stride]).collect();
                let mut order: Vec<usize> = (0..length).collect();
                order.sort_by_key(|i| row[*i]);
                for (i, at) in order.into_iter().enumerate() {
                    assert_eq!(sorted[start + i * stride], row[at], "{dims:?} {axis}");
                    assert_eq!(places[start + i * stride] as usize, at, "{dims:?} {axis}");
                }
            }
        }
    }
    let error = arrays
        .vector(vec![1, 2])?
        .sort(1)
        .expect_err("there is one dimension");
    assert!(error.to_string().contains("dimension"), "{error}");
    Ok(())
}

fn what_is_alike_stays_in_order(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    // Of two tiles.
    let x: Vec<u8> = (0..7000).map(|i| (number(i) >> 62) as u8).collect();
    let places = arrays.vector(x.clone())?.argsort(0)?.to_vec()?;
    let pairs: Vec<(u8, u32)> = places.iter().map(|at| (x[*at as usize], *at)).collect();
    assert!(pairs.is_sorted());
    Ok(())
}

/// Lengths around those of what a thread, a tile and a pair of runs have.
const COMPARED: [usize; 9] = [0, 1, 3, 4, 5, 1023, 1025, 2049, 5000];

fn orders_by_a_comparison(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    for n in COMPARED {
        let x: Vec<i32> = (0..n).map(|i| (number(i) >> 54) as i32 - 512).collect();
        let array = arrays.vector(x.clone())?;
        // Many are alike, so that what stays in its order is seen.
        let sorted = array.sort_by(0, device!(|a, b| a / 100 < b / 100))?;
        let mut expected = x.clone();
        expected.sort_by_key(|x| x / 100);
        assert_eq!(sorted.to_vec()?, expected, "{n}");
        for middle in [-300, 7] {
            let near = device!(|a: i32, b: i32| (a - middle).abs() < (b - middle).abs());
            let mut expected = x.clone();
            expected.sort_by_key(|x| (x - middle).abs());
            assert_eq!(array.sort_by(-1, near)?.to_vec()?, expected, "{n} {middle}");
        }
    }
    for (dims, axis) in [([3, 1100], 1), ([1100, 3], 0), ([2, 2050], -1), ([2, 0], 1)] {
        let n = dims.iter().product();
        let x: Vec<u16> = (0..n).map(|i| (number(i) >> 48) as u16).collect();
        let array = arrays.array(x, dims)?;
        let falling = array.sort_by(axis, device!(|a, b| b < a))?;
        assert_eq!(falling.dims(), dims);
        assert_eq!(
            falling.to_vec()?,
            array.sort(axis)?.flip(axis)?.to_vec()?,
            "{dims:?}"
        );
    }
    Ok(())
}

#[derive(Copy, Clone, PartialEq, Debug, KernelType)]
#[repr(C)]
struct Word {
    key: f32,
    text: [u8; 20],
    place: u64,
}

#[device_fn]
fn is_before(a: Word, b: Word) -> bool {
    a.key < b.key
}

fn structs_are_sorted_by_a_comparison(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let word = |i: usize| Word {
        key: (number(i) >> 57) as f32,
        text: [i as u8; 20],
        place: i as u64,
    };
    for n in [1, 511, 512, 513, 3000] {
        let mut x: Vec<Word> = (0..n).map(word).collect();
        let sorted = arrays.vector(x.clone())?.sort_by(0, device!(is_before))?;
        x.sort_by(|a, b| a.key.total_cmp(&b.key));
        assert_eq!(sorted.to_vec()?, x, "{n}");
    }
    Ok(())
}

fn a_comparison_that_contradicts_itself(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x: Vec<u32> = (0..5000).map(|i| number(i) as u32 | 1).collect();
    let array = arrays.vector(x)?;
    for n in [3, 5000] {
        let part = array.slice(s![0..n])?;
        let all = part.sort_by(0, device!(|_a, _b| true))?.to_vec()?;
        let some = part.sort_by(0, device!(|a, b| (a * 31 + b * 17) % 3 == 0))?;
        // All are elements that were there, none of which is even.
        assert!(all.into_iter().chain(some.to_vec()?).all(|x| x % 2 == 1));
    }
    jit.synchronize()?;
    Ok(())
}

fn parts_by_a_mask(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x: Vec<i32> = (0..5000).map(|i| number(i) as i32).collect();
    let array = arrays.array(x.clone(), (50, 100))?;
    let (even, odd) = array.partition(&(&array & 1).eq(0).eval()?)?;
    let expected: (Vec<i32>, Vec<i32>) = x.into_iter().partition(|x| x % 2 == 0);
    assert_eq!((even.to_vec()?, odd.to_vec()?), expected);
    assert!(array.partition(&arrays.full(5000, true)?).is_err());
    Ok(())
}

fn unique_elements(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    for n in [0, 1, 2, 1000] {
        let x: Vec<u16> = (0..n).map(|i| (number(i) >> 54) as u16).collect();
        let got = arrays.vector(x.clone())?.unique()?.to_vec()?;
        let expected: Vec<u16> = x
            .into_iter()
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .collect();
        assert_eq!(got, expected);
    }
    Ok(())
}

fn quantiles(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x: Vec<f64> = (0..35).map(|i| (number(i) >> 40) as f64).collect();
    let array = arrays.array(x.clone(), (5, 7))?;
    for share in [0.0, 0.1, 0.25, 0.5, 0.99, 1.0] {
        let found = array.quantile(share, 0)?.to_vec()?;
        for (column, found) in found.into_iter().enumerate() {
            let mut sorted: Vec<f64> = (0..5).map(|row| x[row * 7 + column]).collect();
            sorted.sort_by(f64::total_cmp);
            let place: f64 = share * 4.0;
            let (low, high) = (sorted[place as usize], sorted[place.ceil() as usize]);
            let expected = low + (high - low) * place.fract();
            assert!(
                (found - expected).abs() <= 1e-9 * expected.abs(),
                "{share}: {found}, {expected}"
            );
        }
    }
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let odd = arrays.nested([
        [1.0, inf, inf, inf],
        [nan, 1.0, 2.0, 3.0],
        [4.0, 3.0, 2.0, 1.0],
    ])?;
    let medians = odd.median(-1)?.to_vec()?;
    assert_eq!((medians[0], medians[2]), (inf, 2.5));
    assert!(medians[1].is_nan());
    assert!(arrays.zeros::<f32>((3, 0))?.median(1).is_err());
    assert_eq!(arrays.zeros::<f32>((0, 3))?.median(1)?.len(), 0);
    Ok(())
}

fn long_running_sums(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    for n in [0, 1, 5120, 10_241, 20_000] {
        let x: Vec<u32> = (0..n).map(|i| number(i) as u32).collect();
        let sums = arrays.vector(x.clone())?.cumsum(0)?.to_vec()?;
        let mut sum = 0u32;
        let add = |x: u32| {
            sum = sum.wrapping_add(x);
            sum
        };
        let expected: Vec<u32> = x.into_iter().map(add).collect();
        assert_eq!(sums, expected, "{n}");
    }
    Ok(())
}

/// A function `x -> a x + b` modulo 2^32: one after the other is associative, but not commutative.
#[derive(Copy, Clone, PartialEq, Debug, KernelType)]
#[repr(C)]
struct Affine {
    a: u32,
    b: u32,
}

#[device_fn]
fn then(f: Affine, g: Affine) -> Affine {
    Affine {
        a: g.a.wrapping_mul(f.a),
        b: g.a.wrapping_mul(f.b).wrapping_add(g.b),
    }
}

/// The function that changes nothing.
const SAME: Affine = Affine { a: 1, b: 0 };

fn affine(i: usize) -> Affine {
    Affine {
        a: number(i) as u32 | 1,
        b: (number(i) >> 32) as u32,
    }
}

/// Beside the fold of the host, exactly: with and without whole tiles, of pairs, transposed; and without the last element
/// of each.
fn running_folds(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let larger = device!(|a: i64, b: i64| a.max(b));
    for n in [0, 1, 14, 15, 16, 3839, 3840, 3841, 9000] {
        let x: Vec<i64> = (0..n).map(|i| number(i) as i64).collect();
        let mut expected = x.clone();
        for i in 1..n {
            expected[i] = expected[i].max(expected[i - 1]);
        }
        let array = arrays.vector(x)?;
        let largest = array.accumulate(0, larger.clone())?;
        assert_eq!(largest.to_vec()?, expected, "{n}");
        let before = array.accumulate_exclusive(0, larger.clone(), i64::MIN)?;
        let expected = [i64::MIN].into_iter().chain(expected).take(n);
        assert!(before.to_vec()?.into_iter().eq(expected), "{n}");
    }
    let then = device!(then);
    for dims in [
        [1, 5000],
        [1, 17_000],
        [3, 4000],
        [4000, 3],
        [130, 36],
        [0, 3],
    ] {
        let x: Vec<Affine> = (0..dims[0] * dims[1]).map(affine).collect();
        let array = arrays.array(x.clone(), dims)?;
        for axis in 0..2 {
            let stride = [dims[1], 1][axis];
            let is_first = |i: usize| (i / stride).is_multiple_of(dims[axis]);
            let (mut expected, mut before) = (x.clone(), vec![SAME; x.len()]);
            for i in (0..x.len()).filter(|i| !is_first(*i)) {
                before[i] = expected[i - stride];
                expected[i] = self::then(before[i], expected[i]);
            }
            let found = array.accumulate(axis as isize, then.clone())?;
            assert_eq!(found.to_vec()?, expected, "{dims:?} {axis}");
            let found = array.accumulate_exclusive(axis as isize, then.clone(), SAME)?;
            assert_eq!(found.to_vec()?, before, "{dims:?} {axis}");
        }
    }
    Ok(())
}

/// Beside `ndarray`, whose lanes are folded one element after the other.
fn folds_in_order(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let op = device!(then);
    let shapes = [
        [1, 1, 1],
        [3, 31, 2],
        [2, 3, 1300],
        [5, 127, 32],
        [1, 4100, 1],
        [2, 0, 3],
        [0, 2, 2],
    ];
    for dims in shapes {
        let x: Vec<Affine> = (0..dims.iter().product()).map(affine).collect();
        let (ours, theirs) = (
            arrays.array(x.clone(), dims)?,
            Array3::from_shape_vec(dims, x)?,
        );
        // Turned, so that views are folded, too.
        let turned = (
            ours.permute([2, 0, 1])?,
            theirs.view().permuted_axes([2, 0, 1]),
        );
        for (ours, theirs) in [(ours, theirs.view()), turned] {
            for axis in 0..3 {
                let expected = theirs.fold_axis(Axis(axis), SAME, |f, g| self::then(*f, *g));
                let found = ours.reduce_axis_ordered(axis, op.clone(), SAME)?;
                assert_eq!(found.dims(), expected.shape(), "{dims:?} {axis}");
                assert!(
                    found.to_vec()?.iter().eq(expected.iter()),
                    "{dims:?} {axis}"
                );
            }
            // Of two dimensions, of which the last is the faster one.
            let ends = theirs
                .axis_iter(Axis(1))
                .map(|part| part.iter().fold(SAME, |f, g| self::then(f, *g)));
            let found = ours.reduce_axis_ordered(keep_dims([0, 2]), op.clone(), SAME)?;
            assert_eq!(found.dims(), [1, theirs.shape()[1], 1]);
            assert!(found.to_vec()?.into_iter().eq(ends), "{dims:?}");
            let all = theirs.iter().fold(SAME, |f, g| self::then(f, *g));
            assert_eq!(ours.reduce_ordered(op.clone(), SAME)?, all, "{dims:?}");
        }
    }
    // An expression, whose fold has the same bits each time.
    let x: Vec<f32> = (0..9000).map(|i| (number(i) >> 40) as f32).collect();
    let tenths = arrays.vector(x)? / 10.0;
    let sum = device!(|a: f32, b: f32| a + b);
    let sums = (0..3).map(|_| Ok(tenths.reduce_ordered(sum.clone(), 0.0)?.to_bits()));
    let sums: Vec<u32> = sums.collect::<kiln::Result<_>>()?;
    assert_eq!(sums, [sums[0]; 3]);
    let running = tenths.eval()?;
    let running = (0..2).map(|_| Ok(running.accumulate(0, sum.clone())?.to_vec()?));
    let running: Vec<Vec<f32>> = running.collect::<kiln::Result<_>>()?;
    assert_eq!(running[0], running[1]);
    let error = tenths
        .reduce_axis_ordered(1, sum, 0.0)
        .expect_err("there is one dimension");
    expect!["an array of shape 9000 has no dimension 1; it has 1, counted from 0, or from the end by -1 and below"].assert_eq(&error.to_string());
    let twice = arrays.zeros::<f32>((2, 3))?;
    let op = device!(|a: f32, b: f32| a + b);
    let results = [
        twice.reduce_axis_ordered([0, -2], op.clone(), 0.0),
        twice.reduce_axis([0, 1, 0], op, 0.0),
    ];
    for result in results {
        let error = result.expect_err("a dimension is folded once");
        expect![
            "dimension 0 of an array of shape 2x3 is named twice; name each that is folded once"
        ]
        .assert_eq(&error.to_string());
    }
    Ok(())
}

/// Rows that are no whole quads, and such that are, with less than a tile, a part of one and several; a larger element.
fn products_in_tiles(jit: &Jit) -> Outcome {
    for size in [
        (1, 16, 3, 17),
        (1, 130, 19, 33),
        (2, 20, 8, 129),
        (1, 16, 4, 16),
        (2, 131, 20, 132),
        (1, 130, 16, 264),
    ] {
        products_of::<i32>(jit, size)?;
    }
    products_of::<i64>(jit, (2, 17, 12, 20))?;
    products_of::<u8>(jit, (2, 17, 12, 20))
}

fn products_of<T>(jit: &Jit, (pairs, rows, k, columns): (usize, usize, usize, usize)) -> Outcome
where
    T: NumberElement + From<u8> + std::fmt::Debug,
{
    let arrays = Arrays::new(jit);
    // Of numbers this small no sum is larger than 255.
    let value = |i: usize| T::from((number(i) >> 62) as u8);
    let a: Vec<T> = (0..pairs * rows * k).map(value).collect();
    let b: Vec<T> = (0..pairs * k * columns).map(|i| value(i + 99)).collect();
    let x = arrays.array(a.clone(), (pairs, rows, k))?;
    // The right one lies column by column.
    let y = arrays
        .array(b.clone(), (pairs, columns, k))?
        .swap_axes(1, 2)?;
    let got = x.matmul(&y)?;
    assert_eq!(got.dims(), [pairs, rows, columns]);
    let small = |i: usize| (number(i) >> 62) as u8;
    let mut want = Vec::new();
    for pair in 0..pairs {
        for row in 0..rows {
            for column in 0..columns {
                let (left, right) = (pair * rows + row, pair * columns + column);
                let product = |i: usize| small(left * k + i) * small(right * k + i + 99);
                want.push(T::from((0..k).map(product).sum::<u8>()));
            }
        }
    }
    assert_eq!(got.to_vec()?, want, "{pairs} {rows} {k} {columns}");
    Ok(())
}
