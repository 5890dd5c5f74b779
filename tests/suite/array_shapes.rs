//! Arrays of any number of dimensions: made, read, viewed, assigned, folded along axes; their errors.

use expect_test::{Expect, expect};
use half::f16;
use kiln::array::{ArrayError, Border, Convolved, IntoAxes, Outputs, eval_all, keep_dims, where_};
use kiln::prelude::*;

use super::{Outcome, chapter};

chapter![
    arrays_are_made_on_the_device,
    views_share_a_buffer,
    assignments_leave_other_arrays_alone,
    shapes_do_not_make_kernels,
    numbers_on_both_sides,
    comparisons_and_choices,
    functions_of_floats,
    nan_is_as_in_numpy,
    reductions_stay_on_the_device,
    long_rows_and_columns,
    blocks_along_rows,
    arrays_of_nothing,
    arrays_as_arguments,
    errors_name_the_line,
    errors_of_expressions_name_the_line,
    texts_of_errors,
];

fn arrays_are_made_on_the_device(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    assert_eq!(
        arrays.arange(5.0f32, 3.0, -0.5)?.to_vec()?,
        [5.0, 4.5, 4.0, 3.5]
    );
    assert_eq!(arrays.arange(3u8, 3, 1)?.to_vec()?, [0u8; 0]);
    assert_eq!(arrays.linspace(1.0f64, 2.0, 1)?.to_vec()?, [1.0]);
    let eye = arrays.eye::<f32>(3)?;
    assert_eq!((eye.diagonal()?.sum()?, eye.sum()?), (3.0, 3.0));
    let at = device!(|at: [u32; 3]| (100 * at[0] + 10 * at[1] + at[2]) as i64);
    let x = arrays.from_fn([2, 3, 4], at)?;
    assert_eq!(x.get([1, 2, 3])?, 123);
    assert_eq!(
        x.index_axis(1, 1)?.to_vec()?,
        [10, 11, 12, 13, 110, 111, 112, 113]
    );
    let one = arrays.array([7i16], ())?;
    assert_eq!((one.rank(), (&one + 1).eval()?.item()?), (0, 8));
    assert_eq!(arrays.ones::<f16>(3)?.sum()?, f16::from_f32(3.0));
    Ok(())
}

fn views_share_a_buffer(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x = arrays.arange(0i32, 24, 1)?.reshape((2, 3, 4))?;
    let launches = arrays.launches();
    let views = [
        (
            x.slice(s![.., 1..;-1, ..;3])?,
            "2x2x2",
            vec![8, 11, 4, 7, 20, 23, 16, 19],
        ),
        (x.slice(s![1, -1])?, "4", vec![20, 21, 22, 23]),
        (x.t().row(0)?, "4x2", vec![0, 12, 1, 13, 2, 14, 3, 15]),
        (x.diagonal()?, "2x3", vec![0, 5, 10, 12, 17, 22]),
        (
            x.index_axis(0, 0)?.windows(1, 3)?.column(0)?,
            "3x2",
            vec![0, 1, 4, 5, 8, 9],
        ),
        (x.slice(s![0, 0, 1..1])?, "0", vec![]),
    ];
    assert_eq!(arrays.launches(), launches);
    for (view, shape, values) in views {
        assert_eq!(view.shape().to_string(), shape);
        assert_eq!(view.to_vec()?, values);
        assert_eq!(view.buffer().address(), x.buffer().address());
        assert_eq!(view.contiguous()?.to_vec()?, values);
    }
    let flat = x.swap_axes(0, 2)?.flatten()?;
    assert_eq!(flat.to_vec()?[..4], [0, 12, 4, 16]);
    assert_eq!(flat.into_buffer()?.len(), 24);
    Ok(())
}

fn assignments_leave_other_arrays_alone(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let mut x = arrays.arange(0i64, 6, 1)?.reshape((2, 3))?;
    let address = x.buffer().address();
    x.assign(&x * 2)?;
    x += 1;
    assert_eq!(
        (x.to_vec()?, x.buffer().address()),
        (vec![1, 3, 5, 7, 9, 11], address)
    );
    let old = x.clone();
    x -= &old;
    assert_eq!((x.sum()?, old.sum()?), (0, 36));
    // A row goes to each row, and what is turned round is read before it is written.
    let mut x = old.clone();
    x.assign(x.row(1)?)?;
    assert_eq!(x.to_vec()?, [7, 9, 11, 7, 9, 11]);
    let mut row = x.row(0)?;
    row.assign(row.flip(0)?)?;
    assert_eq!(
        (row.to_vec()?, x.row(0)?.to_vec()?),
        (vec![11, 9, 7], vec![7, 9, 11])
    );
    x.slice_mut(s![.., 1])?.assign(5)?;
    assert_eq!(x.to_vec()?, [7, 5, 11, 7, 5, 11]);
    assert_eq!(old.to_vec()?, [1, 3, 5, 7, 9, 11]);
    Ok(())
}

fn shapes_do_not_make_kernels(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    for (rows, columns) in [(3, 5), (7, 2), (64, 33)] {
        let x = arrays.ones::<f32>((rows, columns))?;
        let (row, column) = (arrays.ones::<f32>(columns)?, arrays.ones::<f32>((rows, 1))?);
        assert_eq!(
            (&x + &row + &column).eval()?.to_vec()?,
            vec![3.0; rows * columns]
        );
        // Equal layouts are one dimension, whatever their shapes.
        assert_eq!((&x + &x + &x).eval()?.to_vec()?, vec![3.0; rows * columns]);
        let cube = arrays.ones::<f32>((2, rows, columns))?;
        assert_eq!(
            (&cube + &cube + &cube).eval()?.sum()?,
            6.0 * (rows * columns) as f32
        );
        assert_eq!((&x + x.t().t()).eval()?.len(), rows * columns);
    }
    // Of both sums, of what is the same twice, and of the fold.
    assert_eq!(arrays.kernels(), 4);
    Ok(())
}

fn numbers_on_both_sides(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x = arrays.vector(vec![1u8, 2, 250])?;
    assert_eq!((1u8 + &x * 2).eval()?.to_vec()?, [3, 5, 245]);
    assert_eq!((!&x & 7).eval()?.to_vec()?, [6, 5, 5]);
    assert_eq!((1u8 << (&x % 3) | 8).eval()?.to_vec()?, [10, 12, 10]);
    let y = arrays.vector(vec![f16::from_f32(1.5), f16::from_f32(-2.0)])?;
    let doubled = (f16::from_f32(2.0) * &y).eval()?;
    assert_eq!(doubled.to_vec()?, [f16::from_f32(3.0), f16::from_f32(-4.0)]);
    let flags = arrays.vector(vec![true, false, true])?;
    assert_eq!((!&flags ^ true).eval()?.to_vec()?, [true, false, true]);
    let z = arrays.vector(vec![7i64, -7])?;
    assert_eq!((&z / 2 - 10 % &z).eval()?.to_vec()?, [0, -6]);
    assert_eq!((z >> 1).eval()?.to_vec()?, [3, -4]);
    Ok(())
}

fn comparisons_and_choices(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x = arrays.vector(vec![-3i32, 0, 4])?;
    assert_eq!(where_(x.lt(0), 0, &x).eval()?.to_vec()?, [0, 0, 4]);
    assert_eq!(
        (x.ge(0) & x.ne(4) | x.eq(-3)).eval()?.to_vec()?,
        [true, true, false]
    );
    assert_eq!(x.clamp(-1, 2).eval()?.to_vec()?, [-1, 0, 2]);
    assert_eq!((x.sign() * 10 + x.abs()).eval()?.to_vec()?, [-7, 0, 14]);
    assert_eq!(x.minimum(1).maximum(-1).eval()?.to_vec()?, [-1, 0, 1]);
    assert_eq!(x.gt(0).cast::<f32>().eval()?.to_vec()?, [0.0, 0.0, 1.0]);
    assert_eq!(
        (x.gt(-9).count()?, x.gt(0).any()?, x.gt(0).all()?),
        (3, true, false)
    );
    let numbered = x.map_indexed(device!(|i: u32, v: i32| v + 100 * i as i32));
    assert_eq!(numbered.eval()?.to_vec()?, [-3, 100, 204]);
    Ok(())
}

fn functions_of_floats(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let host = [0.25f64, 0.5, 0.75];
    let x = arrays.vector(host.to_vec())?;
    let sum =
        x.exp() + x.ln() + x.sin() + x.cos() + x.tan() + x.tanh() + x.sqrt() + x.rsqrt() + x.cbrt();
    let more = x.powf(1.5)
        + x.atan2(2.0)
        + x.hypot(1.0)
        + x.log(3.0)
        + x.mul_add(2.0, 1.0)
        + x.copysign(-1.0);
    let rest =
        x.floor() + x.ceil() + x.round() + x.trunc() + x.recip() + x.asin() + x.acos() + x.powi(-2);
    let want = |x: f64| {
        let sum = x.exp()
            + x.ln()
            + x.sin()
            + x.cos()
            + x.tan()
            + x.tanh()
            + x.sqrt()
            + 1.0 / x.sqrt()
            + x.cbrt();
        let more = x.powf(1.5) + x.atan2(2.0) + x.hypot(1.0) + x.log(3.0) + x.mul_add(2.0, 1.0) - x;
        sum + more
            + x.floor()
            + x.ceil()
            + x.round()
            + x.trunc()
            + x.recip()
            + x.asin()
            + x.acos()
            + x.powi(-2)
    };
    let found = (sum + more + rest).eval()?.to_vec()?;
    assert_eq!(arrays.launches(), 1);
    for (found, x) in found.iter().zip(host) {
        assert!(
            (found - want(x)).abs() < 1e-12,
            "{found} is not {}",
            want(x)
        );
    }
    Ok(())
}

fn nan_is_as_in_numpy(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let nan = f32::NAN;
    let x = arrays.array(vec![1.0, nan, 3.0, 4.0, 5.0, -0.0], (2, 3))?;
    assert!(x.max()?.is_nan() && x.min()?.is_nan() && x.sum()?.is_nan());
    assert_eq!((x.argmax()?, x.argmin()?), (1, 1));
    assert_eq!(x.argmax_axis(1)?.to_vec()?, [1, 1]);
    let columns = x.max_axis(0)?.to_vec()?;
    assert_eq!(
        (columns[0], columns[1].is_nan(), columns[2]),
        (4.0, true, 3.0)
    );
    let both = x.minimum(2.0).eval()?.to_vec()?;
    assert!(both[1].is_nan() && both[0] == 1.0 && both[2] == 2.0);
    assert_eq!(x.fmin(2.0).eval()?.to_vec()?[1], 2.0);
    assert!(x.sign().eval()?.to_vec()?[1].is_nan());
    assert_eq!(
        x.is_nan()
            .eval()?
            .to_vec()?
            .iter()
            .filter(|is| **is)
            .count(),
        1
    );
    assert_eq!(
        (x.eq(&x).count()?, x.ne(&x).count()?, x.lt(nan).count()?),
        (5, 1, 0)
    );
    assert!(arrays.vector(Vec::<f32>::new())?.mean()?.is_nan());
    Ok(())
}

fn reductions_stay_on_the_device(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x = arrays.arange(0.0f64, 24.0, 1.0)?.reshape((2, 3, 4))?;
    assert_eq!(x.sum_axis([0, 2])?.to_vec()?, [60.0, 92.0, 124.0]);
    assert_eq!(
        x.mean_axis(-1)?.to_vec()?,
        [1.5, 5.5, 9.5, 13.5, 17.5, 21.5]
    );
    assert_eq!((x.mean()?, x.var()?), (11.5, (24.0 * 24.0 - 1.0) / 12.0));
    assert_eq!(x.prod_axis(0)?.get([0, 1])?, 13.0);
    assert_eq!(x.t().max_axis(keep_dims(0))?.dims(), [1, 3, 2]);
    assert_eq!(x.dot(&x)?, (0..24).map(|i| f64::from(i * i)).sum());
    // A fold of a struct along an axis, and softmax: one kernel for each row's greatest, one for its sum, one for both.
    let rows = x.reshape((6, 4))?;
    let greatest = rows.max_axis(keep_dims(1))?;
    let e = (&rows - &greatest).exp().eval()?;
    let softmax = (&e / e.sum_axis(keep_dims(1))?).eval()?;
    assert!(
        softmax
            .sum_axis(1)?
            .to_vec()?
            .iter()
            .all(|sum| (sum - 1.0).abs() < 1e-12)
    );
    assert!(softmax.row(0)?.to_vec()?.is_sorted());
    let wide = arrays.full((300, 2), 1u8)?;
    assert_eq!(
        (
            wide.sum_axis(0)?.to_vec()?,
            wide.sum_as::<u8>()?,
            wide.sum_axis_as::<u8>(0.into_axes())?.to_vec()?
        ),
        (vec![300u64, 300], 88, vec![44, 44])
    );
    assert_eq!(wide.cast::<u64>().sum_axis(0)?.to_vec()?, [300, 300]);
    Ok(())
}

fn long_rows_and_columns(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    for (rows, columns) in [(3, 5000), (5000, 3), (70, 70), (2, 129)] {
        let x = arrays.indices((rows, columns)).cast::<i64>().eval()?;
        let want_row = |row: usize| {
            (0..columns)
                .map(|column| (row * columns + column) as i64)
                .sum()
        };
        let want_column =
            |column: usize| (0..rows).map(|row| (row * columns + column) as i64).sum();
        let by_row: Vec<i64> = (0..rows).map(want_row).collect();
        let by_column: Vec<i64> = (0..columns).map(want_column).collect();
        assert_eq!(
            (x.sum_axis(1)?.to_vec()?, x.t().sum_axis(0)?.to_vec()?),
            (by_row.clone(), by_row)
        );
        assert_eq!(
            (x.sum_axis(0)?.to_vec()?, x.t().sum_axis(1)?.to_vec()?),
            (by_column.clone(), by_column)
        );
        assert_eq!(x.argmax_axis(1)?.to_vec()?, vec![columns as u32 - 1; rows]);
        assert_eq!(x.argmax()?, rows * columns - 1);
    }
    Ok(())
}

fn blocks_along_rows(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    for (planes, rows, columns) in [(1, 3, 64), (2, 3, 70), (3, 2, 300), (1, 2, 513)] {
        let x = arrays
            .indices((planes, rows, columns))
            .cast::<i64>()
            .eval()?;
        let (row, column) = (x.slice(s![0, 0])?, x.slice(s![.., .., ..1])?);
        let y = (&x * 3 - &row + &column).eval()?.to_vec()?;
        let want = |i: usize| (3 * i - i % columns + i / columns * columns) as i64;
        assert_eq!(y, (0..x.len()).map(want).collect::<Vec<_>>());
        // Places, parts that are read and written, and a turn.
        let mut z = x.clone();
        let part = z.slice(s![.., .., 1..-1])?;
        let numbers = arrays.indices(part.shape()).cast::<i64>();
        z.slice_mut(s![.., .., 1..-1])?
            .assign(&part - numbers + part.flip(2)?)?;
        let inside = columns - 2;
        let want = |i: usize| match (i / columns, i % columns) {
            (_, 0) => i as i64,
            (_, at) if at == columns - 1 => i as i64,
            (row, at) => {
                let turned = row * columns + columns - 1 - at;
                (i + turned) as i64 - (row * inside + at - 1) as i64
            }
        };
        assert_eq!(z.to_vec()?, (0..x.len()).map(want).collect::<Vec<_>>());
    }
    Ok(())
}

fn arrays_of_nothing(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let none = arrays.zeros::<f32>((3, 0, 2))?;
    assert_eq!((&none + 1.0f32).eval()?.dims(), [3, 0, 2]);
    assert_eq!(none.sum_axis(1)?.to_vec()?, [0.0; 6]);
    assert_eq!(none.sum_axis(0)?.dims(), [0, 2]);
    assert_eq!((none.sum()?, none.prod()?), (0.0, 1.0));
    assert_eq!(none.reshape((0, 7))?.to_vec()?, [0.0f32; 0]);
    assert!(none.gt(0.0).all()?);
    let mut none = none;
    none.assign(3.0)?;
    assert!(matches!(none.max(), Err(ArrayError::Empty { .. })));
    Ok(())
}

/// Adds what one thread has in each.
#[kernel]
fn accumulate(x: &[f32], y: &mut [f32]) {
    let i = global_id().x;
    if i < y.len() {
        y[i] += x[i];
    }
}

fn arrays_as_arguments(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x = arrays.arange(0.0f32, 8.0, 1.0)?.reshape((2, 4))?;
    let mut y = arrays.ones(4)?;
    let seen = y.clone();
    accumulate.launch(jit, (1, 32), x.row(1)?.as_part()?, y.as_part_mut()?)?;
    jit.launch(
        &accumulate,
        1,
        32,
        args!(x.row(0)?.as_part()?, y.as_part_mut()?),
    )?;
    assert_eq!(
        (y.to_vec()?, seen.to_vec()?),
        (vec![5.0, 7.0, 9.0, 11.0], vec![1.0; 4])
    );
    accumulate.launch(jit, (1, 32), x.t().column(1)?.as_part()?, y.as_part_mut()?)?;
    assert_eq!(y.to_vec()?, [9.0, 12.0, 15.0, 18.0]);
    Ok(())
}

/// The text of an error, without the place where it is.
fn refused<T>(result: Result<T, ArrayError>, text: Expect) {
    let Err(error) = result else {
        panic!("it is done");
    };
    text.assert_eq(&error.to_string());
}

/// Whoever writes what does not go together is told the line, also of what is computed later, or in between.
fn errors_name_the_line(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let (x, y) = (arrays.zeros::<f32>((2, 3))?, arrays.zeros::<f32>(2)?);
    let (mask, by) = (arrays.full(2, true)?, arrays.zeros::<u32>(2)?);
    let mut z = x.clone();
    let (line, sum) = (line!(), &x + &y);
    let later = [sum.eval().err(), (sum + 1.0).sqrt().sum().err()];
    let first = line!() + 2;
    let errors = [
        (2.0 - &x * &y).eval().err(),
        x.lt(&y).any().err(),
        x.atan2(&y).eval().err(),
        x.clamp(0.0, &y).max_axis(0).err(),
        where_(&mask, &x, 0.0).eval().err(),
        mask.select(&x, 0.0).eval().err(),
        broadcast((&x, &y), device!(|x, y| x + y)).eval().err(),
        eval_all((&x, &y)).err(),
        (&x, &y).eval_all().err(),
        x.dot(&y).err(),
        (&x * 2.0).dot(&y).err(),
        x.matmul(&x).err(),
        z.assign(&y).err(),
        (&y + 1.0).eval_into(&mut z).err(),
        z.slice_mut(s![1, ..])?.assign(&y).err(),
        z.scatter(&by, 0, &y).err(),
        z.scatter_add(&by, 0, &y).err(),
        x.compress(&mask).err(),
        x.partition(&mask).err(),
        x.take_along(&by, 0).err(),
        x.sort_by_key(&y, 0).err(),
        x.broadcast_to((3, 3)).err(),
        x.convolve(&y, Convolved::Full).eval().err(),
        arrays.concat(0, &[&x, &y]).err(),
        arrays.stack(0, &[&x, &y]).err(),
    ];
    let lines = (first..).take(errors.len()).chain([line; 2]);
    for (error, line) in errors.into_iter().chain(later).zip(lines) {
        let error = error.expect("it is refused");
        let text = error.to_string();
        assert!(matches!(error, ArrayError::Shape(_)), "{line}: {text}");
        assert!(
            text.contains(&format!("array_shapes.rs:{line}:")),
            "{line}: {text}"
        );
    }
    Ok(())
}

/// What else an operation of an expression cannot do, which is told where that is computed.
fn errors_of_expressions_name_the_line(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let (x, y) = (arrays.zeros::<f32>((2, 3))?, arrays.zeros::<f32>(2)?);
    let wide = arrays.ones::<f32>(1)?.broadcast_to(1 << 33)?;
    let first_index = device!(|at: [u32; 2]| at[0]);
    let first = line!() + 2;
    let errors = [
        (arrays.coordinates((2, 3), 2) + 1).eval().err(),
        arrays.indices(1 << 33).max().err(),
        arrays.uniform::<f32>(1 << 33, 1).sum().err(),
        wide.argmax().err(),
        arrays.linspace(0.0f32, 1.0, 1 << 33).err(),
        arrays.eye::<f32>(1 << 17).err(),
        arrays.from_fn([1 << 17; 2], first_index).err(),
        x.neighbor([1], Border::Clamp).sqrt().eval().err(),
        wide.neighbor([1], Border::Clamp).eval().err(),
        y.convolve(&x.flatten()?, Convolved::Valid).eval().err(),
    ];
    for (error, line) in errors.into_iter().zip(first..) {
        let error = error.expect("it is refused");
        let text = error.to_string();
        assert!(
            matches!(error, ArrayError::Operation { .. }),
            "{line}: {text}"
        );
        assert!(
            text.contains(&format!("array_shapes.rs:{line}:")),
            "{line}: {text}"
        );
    }
    let error = arrays
        .coordinates((2, 3), 2)
        .eval()
        .expect_err("there are two");
    let text = error.to_string();
    let why = text.rsplit_once(" (").map(|(why, _)| why);
    expect!["an array of shape 2x3 has no dimension 2; it has 2, counted from 0, or from the end by -1 and below"].assert_eq(why.unwrap_or_default());
    Ok(())
}

fn texts_of_errors(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x = arrays.zeros::<f32>((2, 3))?;
    let y = arrays.zeros::<f32>(2)?;
    let line = line!() + 1;
    let error = (1.0 - &x * &y).eval().expect_err("3 and 2").to_string();
    assert!(
        error.contains(&format!("arrays_shapes.rs:{line}:"))
            || error.contains(&format!("array_shapes.rs:{line}:")),
        "{error}"
    );
    let error = error.split(" (").next().unwrap_or_default();
    expect!["arrays of shape 2x3 and 2 do not go together element by element; dimensions are compared from the last, and two have to be equal, or one of them 1"].assert_eq(error);
    refused(
        x.reshape(7),
        expect!["6 values do not fill a 7 array; it has 7 elements"],
    );
    refused(
        x.slice(s![0, 0, 0]),
        expect!["3 indices do not go with an array of shape 2x3, which has 2 dimensions"],
    );
    refused(
        x.slice(s![.., 1..5]),
        expect!["1..5 is outside of dimension 1 of an array of shape 2x3"],
    );
    refused(
        x.row(-3),
        expect!["-3 is outside of dimension 0 of an array of shape 2x3"],
    );
    refused(
        x.get([0, 3]),
        expect!["3 is outside of dimension 1 of an array of shape 2x3"],
    );
    refused(
        x.get([0]),
        expect!["1 indices do not go with an array of shape 2x3, which has 2 dimensions"],
    );
    refused(
        x.sum_axis(2),
        expect![
            "an array of shape 2x3 has no dimension 2; it has 2, counted from 0, or from the end by -1 and below"
        ],
    );
    refused(
        x.permute([0, 0]),
        expect![
            "[0, 0] is no order of the dimensions of an array of shape 2x3; it names each of them once, from 0"
        ],
    );
    refused(
        x.windows(1, 4),
        expect!["there are no windows of 4 elements along dimension 1 of an array of shape 2x3"],
    );
    refused(
        x.item(),
        expect!["an array of shape 2x3 has 6 elements, and no only one"],
    );
    refused(
        x.t().as_part(),
        expect![
            "the elements of this array of shape 3x2 do not lie one after the other (strides [1, 3]); `contiguous()` makes a copy that does"
        ],
    );
    refused(
        arrays.zeros::<f32>(0)?.argmax(),
        expect![
            "the index of the greatest of no elements: an array of shape 0 has none where they are folded"
        ],
    );
    let mut z = arrays.zeros::<f32>(3)?;
    assert!(matches!(z.assign(&x), Err(ArrayError::Shape(_))));
    assert!(matches!(
        z.slice_mut(s![1..])
            .and_then(|mut part| part.assign(&z_of(&arrays)?)),
        Err(ArrayError::Shape(_))
    ));
    Ok(())
}

fn z_of(arrays: &Arrays) -> Result<Array<f32>, ArrayError> {
    arrays.zeros(3)
}
