//! Arrays scanned, gathered, counted, selected from, joined, multiplied, and of random numbers.

use kiln::array::{View2, View2Mut};
use kiln::prelude::*;

use super::{Outcome, chapter};

chapter![
    running_sums_of_any_length,
    elements_by_their_numbers,
    arrays_beside_each_other,
    products_of_matrices,
    random_numbers_are_the_same_everywhere,
    views_in_kernels,
];

fn running_sums_of_any_length(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    for (rows, columns) in [
        (1, 1),
        (3, 31),
        (2, 257),
        (2, 9000),
        (3, 3840),
        (700, 16),
        (200, 40),
        (0, 4),
        (4, 0),
    ] {
        let host: Vec<i64> = (0..(rows * columns) as i64)
            .map(|i| i * 37 % 101 - 50)
            .collect();
        let x = arrays.array(&host, (rows, columns))?;
        let mut along = host.clone();
        let mut down = host.clone();
        for i in 0..host.len() {
            if i % columns > 0 {
                along[i] += along[i - 1];
            }
            if i >= columns {
                down[i] += down[i - columns];
            }
        }
        assert_eq!(x.cumsum(1)?.to_vec()?, along, "{rows} rows of {columns}");
        assert_eq!(x.cumsum(0)?.to_vec()?, down, "{columns} columns of {rows}");
    }
    let x = arrays.full((3, 70, 40), 1i32)?.cumsum(1)?.to_vec()?;
    assert!((0..x.len()).all(|i| x[i] as usize == i / 40 % 70 + 1));
    let x = arrays.full(100, 3u32)?;
    let powers = x.cumprod(0)?.to_vec()?;
    assert_eq!(
        powers[99],
        (0..100).fold(1u32, |power, _| power.wrapping_mul(3))
    );
    Ok(())
}

fn elements_by_their_numbers(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x = arrays.arange(0i32, 24, 1)?.reshape((2, 3, 4))?;
    let from = arrays.vector(vec![2u32, 2, 0])?;
    let taken = x.take(&from, 1)?;
    assert_eq!(
        (taken.dims(), taken.get([1, 0, 3])?, taken.get([0, 2, 1])?),
        (&[2, 3, 4][..], 23, 1)
    );
    let host: Vec<i32> = (0..3000).map(|i| i * 7919 % 1000).collect();
    let numbers = arrays.vector(host.clone())?;
    let small = numbers.compress(&numbers.lt(300).eval()?)?;
    assert_eq!(
        small.to_vec()?,
        host.iter()
            .copied()
            .filter(|n| *n < 300)
            .collect::<Vec<_>>()
    );
    let even = (x.expr() % 2).eq(0).eval()?;
    assert_eq!(even.nonzero()?.len(), 12);
    let counts = (&numbers - 500).eval()?.bincount(100)?.to_vec()?;
    let want = |bin: i32| host.iter().filter(|n| **n - 500 == bin).count() as u32;
    assert_eq!(counts, (0..100).map(want).collect::<Vec<_>>());
    Ok(())
}

fn arrays_beside_each_other(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x = arrays.arange(0i64, 6, 1)?.reshape((2, 3))?;
    let y = arrays.concat(0, &[&x, &x.slice(s![..1])?, &x.flip(1)?])?;
    assert_eq!(y.to_vec()?, [0, 1, 2, 3, 4, 5, 0, 1, 2, 2, 1, 0, 5, 4, 3]);
    assert_eq!(arrays.stack(-1, &[&x, &x])?.dims(), [2, 3, 2]);
    assert_eq!(x.roll(1, 4)?.to_vec()?, [2, 0, 1, 5, 3, 4]);
    let padded = x.pad(&[(1, 0), (0, 1)], 9)?;
    assert_eq!(padded.to_vec()?, [9, 9, 9, 9, 0, 1, 2, 9, 3, 4, 5, 9]);
    assert!(arrays.concat(0, &[&x, &x.t()]).is_err());
    assert_eq!(x.diff(1)?.sum()?, 4);
    Ok(())
}

fn products_of_matrices(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    for (m, k, n) in [(1, 1, 1), (3, 4, 5), (33, 70, 17), (2, 300, 3)] {
        let a = (arrays.indices((m, k)) % 7).cast::<i64>().eval()?;
        let b = (arrays.indices((k, n)) % 5).cast::<i64>().eval()?;
        let element = |i: usize, j: usize| -> i64 {
            (0..k)
                .map(|p| ((i * k + p) % 7) as i64 * ((p * n + j) % 5) as i64)
                .sum()
        };
        let want: Vec<i64> = (0..m * n).map(|at| element(at / n, at % n)).collect();
        assert_eq!(a.matmul(&b)?.to_vec()?, want);
        assert_eq!(b.t().matmul(&a.t())?.t().to_vec()?, want);
        let batch = arrays.stack(0, &[&a, &a])?.matmul(&b)?;
        assert_eq!(
            (batch.dims(), batch.row(0)?.to_vec()?.len()),
            (&[2, m, n][..], 2 * n)
        );
    }
    let (x, y) = (
        arrays.vector(vec![1i32, 2, 3])?,
        arrays.vector(vec![4, 5, 6])?,
    );
    assert_eq!(x.matmul(&y)?.item()?, 32);
    Ok(())
}

fn random_numbers_are_the_same_everywhere(jit: &Jit) -> Outcome {
    use kiln::stdlib::random::Philox;
    let arrays = Arrays::new(jit);
    let x = arrays.uniform::<f32>(100, 42).eval()?.to_vec()?;
    let y = arrays.uniform::<f64>((10, 10), 42).eval()?.to_vec()?;
    for i in 0..100 {
        let random = || Philox::new(42, i);
        assert_eq!(
            (x[i as usize], y[i as usize]),
            (random().uniform_f32(), random().uniform_f64())
        );
    }
    let draws = (0..100).map(|i| Philox::new(7, i));
    let signed = arrays.integers(100, -3i32..i32::MAX, 7)?.eval()?.to_vec()?;
    let expected: Vec<i32> = draws
        .clone()
        .map(|mut r| r.range_i32(-3, i32::MAX))
        .collect();
    assert_eq!(signed, expected);
    let wide = arrays
        .integers((10, 10), i64::MIN..0, 7)?
        .eval()?
        .to_vec()?;
    let expected: Vec<i64> = draws
        .clone()
        .map(|mut r| r.range_i64(i64::MIN, 0))
        .collect();
    assert_eq!(wide, expected);
    let narrow = arrays.integers(100, 5u32..1000, 7)?.eval()?.to_vec()?;
    let expected: Vec<u32> = draws.map(|mut r| 5 + r.below(995)).collect();
    assert_eq!(narrow, expected);
    let order = arrays.permutation(1000, 9)?;
    assert!(!order.to_vec()?.is_sorted());
    assert_eq!(order.sort(0)?.to_vec()?, (0..1000).collect::<Vec<u32>>());
    let normal = arrays.normal::<f32>(4000, 3).eval()?;
    assert!(normal.mean()?.abs() < 0.1 && (normal.std()? - 1.0).abs() < 0.1);
    Ok(())
}

/// Turns an image round.
#[kernel]
fn turn(x: View2<'_, f32>, mut y: View2Mut<'_, f32>, beyond: usize) {
    let (i, j) = (global_id().y, global_id().x);
    if i < y.dim(0) && j < y.dim(1) {
        y.set(i, j, x.at(j + beyond, x.dim(1) - 1 - i));
    }
}

fn views_in_kernels(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x = arrays.arange(0.0f32, 12.0, 1.0)?.reshape((3, 4))?;
    let mut y = arrays.zeros::<f32>((3, 3))?;
    turn.launch(
        jit,
        (1, (8, 8)),
        x.slice(s![.., 1..])?.as_view2()?,
        y.as_view2_mut()?,
        0,
    )?;
    assert_eq!(y.to_vec()?, [3.0, 7.0, 11.0, 2.0, 6.0, 10.0, 1.0, 5.0, 9.0]);
    let mut z = arrays.zeros::<f32>((4, 3))?;
    jit.launch(
        &turn,
        1,
        (8, 8),
        args!(x.flip(0)?.as_view2()?, z.as_view2_mut()?, 0usize),
    )?;
    assert_eq!(z.row(0)?.to_vec()?, [11.0, 7.0, 3.0]);
    assert!(x.row(0)?.as_view2().is_err());
    turn.launch(jit, (1, (8, 8)), x.as_view2()?, z.as_view2_mut()?, 1)?;
    let fault = jit
        .synchronize()
        .expect_err("a row beyond the last")
        .to_string();
    assert!(fault.contains("an index is outside of the view"), "{fault}");
    Ok(())
}
