//! Elements beside others: neighbours with a border, convolutions, several results of one pass.

use expect_test::expect;
use half::f16;
use kiln::array::{ArrayError, Border, Convolved, eval_all};
use kiln::prelude::*;

use super::{Outcome, chapter};

chapter![
    neighbors_have_borders,
    neighbors_of_views,
    neighbors_in_three_dimensions,
    many_neighbors_at_once,
    neighbors_beside_other_reads,
    neighbors_of_views_of_one_buffer,
    indices_along_each_dimension,
    a_stencil_is_one_kernel,
    convolutions,
    what_has_no_neighbors,
    several_results,
];

/// The index that a border finds for one that may be outside; `None` for a value.
fn found(border: Border<i64>, i: isize, n: isize) -> Option<isize> {
    match border {
        Border::Value(_) => (0..n).contains(&i).then_some(i),
        Border::Clamp => Some(i.clamp(0, n - 1)),
        Border::Wrap => Some(i.rem_euclid(n)),
        Border::Reflect if n == 1 => Some(0),
        Border::Reflect => {
            let i = i.rem_euclid(2 * (n - 1));
            Some(if i < n { i } else { 2 * (n - 1) - i })
        }
    }
}

const BORDERS: [Border<i64>; 4] = [
    Border::Value(-7),
    Border::Clamp,
    Border::Wrap,
    Border::Reflect,
];

fn neighbors_have_borders(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    for (rows, columns) in [(1isize, 1isize), (1, 5), (4, 3), (3, 70), (0, 4)] {
        let shape = (rows as usize, columns as usize);
        let x = arrays.indices(shape).cast::<i64>().eval()?;
        for border in BORDERS {
            for (di, dj) in [(0, 0), (0, 1), (-1, 0), (2, -3), (-9, 100)] {
                let neighbor = x.neighbor([di, dj], border).eval()?.to_vec()?;
                let want = |at: isize| {
                    let (i, j) = (at / columns, at % columns);
                    let here = found(border, i + di, rows).zip(found(border, j + dj, columns));
                    here.map_or(-7, |(i, j)| (i * columns + j) as i64)
                };
                let want: Vec<i64> = (0..rows * columns).map(want).collect();
                assert_eq!(neighbor, want, "{border:?} {rows}x{columns} by {di}, {dj}");
            }
        }
    }
    // Distances up to 4 are part of kernels, and larger ones numbers, in the three ways to go through elements; and one
    // kernel makes the array.
    assert!(arrays.kernels() <= 4 * 5 * 3 + 3, "{}", arrays.kernels());
    let before = arrays.kernels();
    let x = arrays.indices(70).eval()?;
    for by in [5, -6, 40] {
        x.neighbor([by], Border::Clamp).eval()?;
    }
    assert_eq!(arrays.kernels(), before + 2, "one of indices, one of all");
    Ok(())
}

/// Of an array and its values on the host the sum of neighbours, each times a number of its own, is what the border says.
fn has_sums_around(x: &Array<i32>, by: &[&[isize]], border: Border<i32>) -> Outcome {
    let (dims, host) = (x.dims().to_vec(), x.to_vec()?);
    let mut sum = x.expr();
    for (n, by) in (2..).zip(by) {
        sum = sum + x.neighbor(by, border) * n;
    }
    let found_border = match border {
        Border::Value(_) => Border::Value(0),
        Border::Clamp => Border::Clamp,
        Border::Wrap => Border::Wrap,
        Border::Reflect => Border::Reflect,
    };
    let want = |at: usize| {
        let mut sum = host[at];
        for (n, by) in (2..).zip(by) {
            let (mut rest, mut stride, mut place) = (at, 1, Some(0));
            for (dim, by) in dims.iter().zip(*by).rev() {
                let i = found(found_border, (rest % dim) as isize + by, *dim as isize);
                place = place.zip(i).map(|(place, i)| place + i as usize * stride);
                (rest, stride) = (rest / dim, stride * dim);
            }
            let value = if let Border::Value(value) = border {
                value
            } else {
                0
            };
            sum += place.map_or(value, |place| host[place]) * n;
        }
        sum
    };
    let want: Vec<i32> = (0..host.len()).map(want).collect();
    let got = sum.eval()?.to_vec()?;
    let wrong = (0..want.len()).find(|at| got[*at] != want[*at]);
    assert_eq!(
        wrong.map(|at| (at, got[at], want[at])),
        None,
        "{dims:?} {border:?} {by:?}"
    );
    Ok(())
}

/// Threads of GPUs have several elements of rows, and of rows below each other, and read what they share once.
fn many_neighbors_at_once(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let nine: Vec<[isize; 2]> = (0..9).map(|n| [n / 3 - 1, n % 3 - 1]).collect();
    let nine: Vec<&[isize]> = nine.iter().map(|by| &by[..]).collect();
    let apart: [&[isize]; 4] = [&[-4, 3], &[2, -4], &[0, 4], &[1, 0]];
    let borders = BORDERS.map(|border| match border {
        Border::Value(_) => Border::Value(-7),
        Border::Clamp => Border::Clamp,
        Border::Wrap => Border::Wrap,
        Border::Reflect => Border::Reflect,
    });
    let whole = arrays.indices((21, 76)).cast::<i32>().eval()?;
    let views = [
        whole.slice(s![.., ..])?,
        // Rows that begin where accesses to four elements may, and where they may not.
        whole.slice(s![3.., 4..72])?,
        whole.slice(s![..9, 1..69])?,
        whole.slice(s![..;-1, ..;-1])?,
        arrays.indices((5, 67)).cast::<i32>().eval()?,
    ];
    for (n, x) in views.iter().enumerate() {
        for border in borders.iter().skip(n % 2).step_by(2) {
            has_sums_around(x, &nine, *border)?;
            has_sums_around(x, &apart, *border)?;
        }
    }
    let line = arrays.indices(83).cast::<i32>().eval()?;
    let planes = arrays.indices([3, 13, 68]).cast::<i32>().eval()?;
    for border in borders {
        has_sums_around(&line, &[&[-1], &[4], &[0]], border)?;
        has_sums_around(&line.slice(s![3..])?, &[&[-3], &[1]], border)?;
        let by: [&[isize]; 5] = [
            &[-1, 0, 0],
            &[1, -1, 1],
            &[0, 3, 0],
            &[0, -1, -2],
            &[2, 0, 0],
        ];
        has_sums_around(&planes, &by, border)?;
    }
    Ok(())
}

/// Neighbours of several arrays and types in one expression, beside what other functions read where they like.
fn neighbors_beside_other_reads(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x = arrays.indices((10, 72)).cast::<i32>().eval()?;
    let y = x.cast::<f64>().eval()?;
    let halves = (&x % 100).cast::<f16>().eval()?;
    let row = arrays.indices(72).cast::<i32>().eval()?;
    let clamp = |x: &Array<i32>, by: [isize; 2]| x.neighbor(by, Border::Clamp);
    let sums = clamp(&x, [-1, 0]).cast::<f64>()
        + y.neighbor([1, 1], Border::Wrap)
        + halves.neighbor([0, -1], Border::Reflect).cast::<f64>()
        + row.expr().cast::<f64>();
    let got = sums.eval()?.to_vec()?;
    let at = |i: usize, j: usize| i * 72 + j;
    let want = |n: usize| {
        let (i, j) = (n / 72, n % 72);
        let half = at(i, j.abs_diff(1)) % 100;
        (at(i.saturating_sub(1), j) + at((i + 1) % 10, (j + 1) % 72) + half + j) as f64
    };
    let want: Vec<f64> = (0..720).map(want).collect();
    assert_eq!(got, want);
    let halves_around = (halves.neighbor([-1, 1], Border::Clamp) + &halves)
        .eval()?
        .to_vec()?;
    let half = |i: usize, j: usize| f16::from_f32((at(i, j) % 100) as f32);
    for (n, got) in halves_around.into_iter().enumerate() {
        let (i, j) = (n / 72, n % 72);
        let other = half(i.saturating_sub(1), (j + 1).min(71));
        let want = f16::from_f32(half(i, j).to_f32() + other.to_f32());
        assert_eq!(got, want, "{i}, {j}");
    }
    let weights = arrays.array(vec![1, 0, 2], (1, 3))?;
    let both = clamp(&x, [-1, 0]) + x.convolve(&weights, Convolved::Same);
    let got = both.eval()?.to_vec()?;
    for (n, got) in got.into_iter().enumerate() {
        let (i, j) = (n / 72, n % 72);
        let before = if j > 0 { at(i, j - 1) } else { 0 };
        let behind = if j < 71 { at(i, j + 1) } else { 0 };
        let want = at(i.saturating_sub(1), j) + 2 * before + behind;
        assert_eq!(got as usize, want, "{i}, {j}");
    }
    Ok(())
}

/// Expressions that differ in whose own elements they read, of two views that neighbours are read of.
fn neighbors_of_views_of_one_buffer(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let whole = arrays.indices((12, 72)).cast::<i32>().eval()?;
    let (upper, lower) = (whole.slice(s![..9, ..68])?, whole.slice(s![3.., ..68])?);
    let around = || {
        let above = upper.neighbor([-1, 0], Border::Clamp);
        above + lower.neighbor([0, 1], Border::Clamp)
    };
    let at = |i: usize, j: usize| (i * 72 + j) as i32;
    for (own, first) in [(&upper, 0), (&lower, 3)] {
        let got = (around() + own).eval()?.to_vec()?;
        for (n, got) in got.into_iter().enumerate() {
            let (i, j) = (n / 68, n % 68);
            let around = at(i.saturating_sub(1), j) + at(i + 3, (j + 1).min(67));
            assert_eq!(got, around + at(i + first, j), "{i}, {j}, from {first} on");
        }
    }
    Ok(())
}

fn neighbors_of_views(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let whole = arrays.indices((6, 8)).cast::<i64>().eval()?;
    let x = whole.slice(s![1..;2, ..;-1])?.t();
    let host = x.to_vec()?;
    let (rows, columns) = (8, 3);
    let before = x.neighbor([-1, 1], Border::Value(0)).eval()?.to_vec()?;
    for i in 0..rows {
        for j in 0..columns {
            let want = match i > 0 && j + 1 < columns {
                true => host[(i - 1) * columns + j + 1],
                false => 0,
            };
            assert_eq!(before[i * columns + j], want);
        }
    }
    let halves = arrays.vector([1.0, 2.0, 3.0].map(f16::from_f32).to_vec())?;
    let border = Border::Value(f16::from_f32(0.5));
    let sums = (halves.neighbor([-1], border) + &halves).eval()?.to_vec()?;
    assert_eq!(sums, [1.5, 3.0, 5.0].map(f16::from_f32));
    Ok(())
}

/// Rows are long enough for blocks to go along them, and no multiple of what a thread has of them.
fn neighbors_in_three_dimensions(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let dims = [2usize, 9, 67];
    let x = arrays.indices(&dims[..]).cast::<i64>().eval()?;
    for border in BORDERS {
        for by in [[0, -1, 1], [1, 0, -2], [-1, 3, 0], [1, -1, 1]] {
            let got = x.neighbor(by, border).eval()?.to_vec()?;
            let want = |at: usize| {
                let place = [at / (9 * 67), at / 67 % 9, at % 67];
                let along = |axis: usize| {
                    found(border, place[axis] as isize + by[axis], dims[axis] as isize)
                };
                let here = along(0).zip(along(1)).zip(along(2));
                here.map_or(-7, |((i, j), k)| ((i * 9 + j) * 67 + k) as i64)
            };
            let want: Vec<i64> = (0..2 * 9 * 67).map(want).collect();
            assert_eq!(got, want, "{border:?} {by:?}");
        }
    }
    Ok(())
}

/// In rows, in rows whose lengths are multiples of 4, in tiles, and in one dimension.
fn indices_along_each_dimension(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    for dims in [[3usize, 5, 67], [2, 3, 128], [17, 4, 40], [1, 1, 90]] {
        let count = dims.iter().product::<usize>();
        let along = |axis| arrays.coordinates(&dims[..], axis);
        let all = along(0) * 10_000 + along(1) * 1_000 + along(2);
        let want = |at: usize| {
            let [i, j, k] = [at / dims[2] / dims[1], at / dims[2] % dims[1], at % dims[2]];
            (i * 10_000 + j * 1_000 + k) as u32
        };
        let want: Vec<u32> = (0..count).map(want).collect();
        assert_eq!(all.eval()?.to_vec()?, want, "{dims:?}");
        let x = arrays.indices(&dims[..]).eval()?;
        let beside = (&x + &all).eval()?.to_vec()?;
        assert!(
            (0..count).all(|at| beside[at] == at as u32 + want[at]),
            "{dims:?}"
        );
        // Of an array whose neighbours lie apart.
        let turned = arrays.indices([dims[2], dims[1], dims[0]]).eval()?;
        let turned = (turned.permute([2, 1, 0])? + &all).eval()?.to_vec()?;
        let place = |at: usize| (at % dims[2] * dims[1] + at / dims[2] % dims[1]) * dims[0];
        let there = |at: usize| (place(at) + at / dims[2] / dims[1]) as u32;
        assert!(
            (0..count).all(|at| turned[at] == there(at) + want[at]),
            "{dims:?}"
        );
    }
    Ok(())
}

fn a_stencil_is_one_kernel(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let (rows, columns) = (9usize, 66usize);
    let host: Vec<f64> = (0..rows * columns).map(|i| (i * 37 % 101) as f64).collect();
    let mut heat = arrays.array(&host, (rows, columns))?;
    let step = |heat: &Array<f64>| {
        let at = |di, dj| heat.neighbor([di, dj], Border::Clamp);
        heat + 0.125 * (at(-1, 0) + at(1, 0) + at(0, -1) + at(0, 1) - 4.0 * heat)
    };
    let next = step(&heat).eval()?.to_vec()?;
    assert_eq!((arrays.launches(), arrays.kernels()), (1, 1));
    for i in 0..rows {
        for j in 0..columns {
            let at = |i: usize, j: usize| host[i.min(rows - 1) * columns + j.min(columns - 1)];
            let around = at(i.saturating_sub(1), j)
                + at(i + 1, j)
                + at(i, j.saturating_sub(1))
                + at(i, j + 1);
            let want = at(i, j) + 0.125 * (around - 4.0 * at(i, j));
            assert!((next[i * columns + j] - want).abs() < 1e-9);
        }
    }
    // What is written is not what is read.
    heat.assign(step(&heat))?;
    assert_eq!(heat.to_vec()?, next);
    Ok(())
}

fn convolutions(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x = arrays.vector((1..=9).collect::<Vec<i32>>())?;
    let w = arrays.vector(vec![1, -2, 3, 5])?;
    let direct = |first: i32, count: i32| -> Vec<i32> {
        let at = |i: i32| if (0..9).contains(&i) { i + 1 } else { 0 };
        let sum = |o: i32| {
            [1, -2, 3, 5]
                .iter()
                .zip(0..)
                .map(|(w, t)| w * at(o + first - t))
                .sum()
        };
        (0..count).map(sum).collect()
    };
    assert_eq!(
        x.convolve(&w, Convolved::Full).eval()?.to_vec()?,
        direct(0, 12)
    );
    assert_eq!(
        x.convolve(&w, Convolved::Same).eval()?.to_vec()?,
        direct(1, 9)
    );
    assert_eq!(
        x.convolve(&w, Convolved::Valid).eval()?.to_vec()?,
        direct(3, 6)
    );
    // Of matrices and spaces, by views, and with what is computed around it.
    let image = arrays.arange(0i64, 30, 1)?.reshape((5, 6))?;
    let mean = arrays.ones::<i64>((3, 3))?;
    let sums = image.t().convolve(&mean, Convolved::Valid) * 2;
    let inner = image
        .t()
        .windows(0, 3)?
        .sum_axis(-1)?
        .windows(1, 3)?
        .sum_axis(-1)?
        * 2;
    assert_eq!(sums.eval()?.to_vec()?, inner.eval()?.to_vec()?);
    let space = arrays.ones::<f32>((3, 4, 5))?;
    let cube = space
        .convolve(&arrays.ones::<f32>((2, 2, 2))?, Convolved::Same)
        .eval()?;
    assert_eq!(
        (cube.dims(), cube.get([1, 1, 1])?, cube.get([0, 0, 0])?),
        (&[3, 4, 5][..], 8.0, 1.0)
    );
    assert_eq!(
        space.convolve(&space, Convolved::Full).eval()?.dims(),
        [5, 7, 9]
    );
    Ok(())
}

fn what_has_no_neighbors(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x = arrays.ones::<f32>((2, 3))?;
    let refused = |result: kiln::array::Expr<f32>, text: expect_test::Expect| {
        let error = result.eval().expect_err("it is refused").to_string();
        // With the line at which it is written.
        let (why, at) = error.rsplit_once(" (").expect("there is one");
        assert!(at.contains("array_beside.rs:"), "{at}");
        text.assert_eq(why);
    };
    refused(
        x.neighbor([1], Border::Clamp),
        expect!["1 indices do not go with an array of shape 2x3, which has 2 dimensions"],
    );
    let row = arrays.ones::<f32>(3)?;
    assert!(matches!(
        x.convolve(&row, Convolved::Full).eval(),
        Err(ArrayError::Shape(_))
    ));
    refused(
        row.convolve(&arrays.ones::<f32>(5)?, Convolved::Valid),
        expect!["there are no windows of 5 elements along dimension 0 of an array of shape 3"],
    );
    let wide = arrays.ones::<f32>(1)?.broadcast_to(1 << 31)?;
    refused(
        wide.neighbor([1], Border::Clamp),
        expect![
            "a neighbour of an array of shape 2147483648: its indices tell 4294967295 elements apart; go through it in parts, `x.slice(s![a..b])`"
        ],
    );
    Ok(())
}

fn several_results(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    for len in [1usize, 31, 1000, 5000] {
        let host: Vec<f32> = (0..len).map(|i| i as f32 - 20.0).collect();
        let x = arrays.vector(host.clone())?;
        let (launches, kernels) = (arrays.launches(), arrays.kernels());
        let (double, is_less, half) = eval_all((2.0 * &x, x.lt(0.0), x.cast::<f16>()))?;
        assert_eq!(arrays.launches(), launches + 1);
        assert!(arrays.kernels() <= kernels + 1);
        assert_eq!(
            double.to_vec()?,
            host.iter().map(|x| 2.0 * x).collect::<Vec<_>>()
        );
        assert_eq!(
            is_less.to_vec()?,
            host.iter().map(|x| *x < 0.0).collect::<Vec<_>>()
        );
        assert_eq!(
            half.to_vec()?,
            host.iter().map(|x| f16::from_f32(*x)).collect::<Vec<_>>()
        );
    }
    // Shapes go together; a view is read as any other.
    let (x, y) = (
        arrays.arange(0i32, 6, 1)?.reshape((2, 3))?,
        arrays.arange(0i32, 3, 1)?,
    );
    let (sum, row, turned, number) = eval_all((&x + &y, &y, x.t().t() * 2, x.expr() * 3))?;
    assert_eq!(sum.to_vec()?, [0, 2, 4, 3, 5, 7]);
    assert_eq!(
        (row.to_vec()?, row.dims()),
        (vec![0, 1, 2, 0, 1, 2], &[2, 3][..])
    );
    assert_eq!(
        (turned.to_vec()?, number.to_vec()?),
        (vec![0, 2, 4, 6, 8, 10], vec![0, 3, 6, 9, 12, 15])
    );
    assert!(matches!(eval_all((&x, x.t())), Err(ArrayError::Shape(_))));
    let none = arrays.zeros::<f32>(0)?;
    assert_eq!(eval_all((&none, none.sqrt()))?.1.len(), 0);
    Ok(())
}
