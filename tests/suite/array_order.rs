//! Arrays in order, running sums and products: beside the host, for all types, lengths around the sizes of tiles, and dimensions.

use half::{bf16, f16};
use kiln::array::SortElement;
use kiln::prelude::*;

use super::{Outcome, chapter};

chapter![
    whole_arrays_are_sorted,
    floats_are_sorted_with_nans_last,
    rows_and_columns_are_sorted,
    what_is_alike_stays_in_order,
    unique_elements,
    long_running_sums,
    products_in_tiles,
];

/// A number of 64 bits without an order.
fn number(i: usize) -> u64 {
    (i as u64 + 1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .rotate_left(17)
}

/// Around the size of a tile, and less.
const LENGTHS: [usize; 5] = [0, 1, 33, 4096, 4097];
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
    sorts(jit, &SHORT, |n| n)?;
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
    let x: Vec<u8> = (0..5000).map(|i| (number(i) >> 62) as u8).collect();
    let places = arrays.vector(x.clone())?.argsort(0)?.to_vec()?;
    let pairs: Vec<(u8, u32)> = places.iter().map(|at| (x[*at as usize], *at)).collect();
    assert!(pairs.is_sorted());
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

fn long_running_sums(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    for n in [0, 1, 4096, 4097, 20_000] {
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

/// Beside the fold of the host, exactly: with and without whole tiles, of pairs, transposed.
fn products_in_tiles(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    for (pairs, rows, k, columns) in [(1, 16, 3, 17), (1, 130, 19, 33), (2, 20, 8, 129)] {
        let value = |i: usize| (number(i) >> 60) as i32 - 8;
        let a: Vec<i32> = (0..pairs * rows * k).map(value).collect();
        let b: Vec<i32> = (0..pairs * k * columns).map(|i| value(i + 99)).collect();
        let x = arrays.array(a.clone(), (pairs, rows, k))?;
        // The right one lies column by column.
        let y = arrays
            .array(b.clone(), (pairs, columns, k))?
            .swap_axes(1, 2)?;
        let got = x.matmul(&y)?;
        assert_eq!(got.dims(), [pairs, rows, columns]);
        let mut want = Vec::new();
        for pair in 0..pairs {
            for row in 0..rows {
                for column in 0..columns {
                    let (left, right) = (pair * rows + row, pair * columns + column);
                    let product = |i: usize| a[left * k + i] * b[right * k + i];
                    want.push((0..k).map(product).sum::<i32>());
                }
            }
        }
        assert_eq!(got.to_vec()?, want, "{pairs} {rows} {k} {columns}");
    }
    Ok(())
}
