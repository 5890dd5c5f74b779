//! Arrays: fused broadcast, reductions, counting launches and compilations.

use kiln::array::{ArrayError, Shape};
use kiln::core::target::Target;
use kiln::prelude::*;

use super::{Outcome, chapter};

chapter![
    an_expression_is_one_kernel,
    operators_take_arrays_by_value,
    the_same_expression_compiles_once,
    broadcasting_rows_and_scalars,
    functions_of_the_builder_are_fused,
    device_functions_are_fused,
    captured_numbers_are_parameters,
    each_closure_is_a_kernel,
    results_of_other_types,
    several_arguments,
    names_in_closures,
    closures_in_generic_functions,
    closures_in_macros,
    sums_and_user_reductions,
    reduction_of_a_struct,
    reduction_of_an_expression,
    types_of_one_name_are_told_apart,
    wrong_arrays_are_errors,
    errors_of_arrays_are_errors_of_kiln,
];

/// A point of the plane.
#[derive(KernelType, Copy, Clone, Debug, PartialEq)]
#[repr(C)]
struct Point {
    x: i64,
    y: i64,
}

/// `3x^2 + 5x + 2`.
#[device_fn]
fn polynomial<T: Float>(x: T) -> T {
    T::from_f64(3.0) * x * x + T::from_f64(5.0) * x + T::from_f64(2.0)
}

#[device_fn]
fn add(a: Point, b: Point) -> Point {
    Point {
        x: a.x + b.x,
        y: a.y + b.y,
    }
}

#[device_fn]
fn lerp<T: Float>(a: T, b: T, t: T) -> T {
    a + (b - a) * t
}

fn an_expression_is_one_kernel(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let host: Vec<f64> = (0..1000).map(|i| f64::from(i) * 0.01).collect();
    let x = arrays.vector(host.clone())?;
    let before = jit.cache_stats();
    let t = 2.0 * x.powi(2) + 6.0 * x.powi(3) - x.sqrt();
    let y = t.map(device!(polynomial)).eval()?;
    assert_eq!(arrays.launches(), 1);
    assert_eq!(jit.cache_stats().compiles - before.compiles, 1);
    for (x, y) in host.iter().zip(y.to_vec()?) {
        let t = 2.0 * x * x + 6.0 * x * x * x - x.sqrt();
        let want = 3.0 * t * t + 5.0 * t + 2.0;
        assert!(
            (y - want).abs() <= 1e-9 * want.abs().max(1.0),
            "{y} is not {want}"
        );
    }
    Ok(())
}

fn operators_take_arrays_by_value(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x = || arrays.vector(vec![1.0f32, 2.0]);
    let y = &arrays.vector(vec![3.0f32, 5.0])?;
    assert_eq!((x()? + y).eval()?.to_vec()?, [4.0, 7.0]);
    assert_eq!((y * x()?).eval()?.to_vec()?, [3.0, 10.0]);
    assert_eq!((x()? / x()?).eval()?.to_vec()?, [1.0, 1.0]);
    assert_eq!((-x()? - 1.0).eval()?.to_vec()?, [-2.0, -3.0]);
    assert_eq!((6.0 / x()?).eval()?.to_vec()?, [6.0, 3.0]);
    let sum = x()? + y;
    assert_eq!((2.0 * &sum - &-&sum).eval()?.to_vec()?, [12.0, 21.0]);
    Ok(())
}

fn the_same_expression_compiles_once(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let before = jit.cache_stats();
    for n in [10usize, 100, 57] {
        let (a, b) = (
            arrays.vector(vec![1.0f32; n])?,
            arrays.vector(vec![2.0f32; n])?,
        );
        let y = (&a * &b + n as f32).eval()?;
        assert_eq!(y.to_vec()?, vec![2.0 + n as f32; n]);
    }
    assert_eq!(arrays.launches(), 3);
    assert_eq!(jit.cache_stats().compiles - before.compiles, 1);
    let (a, b) = (arrays.vector(vec![1i32; 5])?, arrays.vector(vec![2i32; 5])?);
    assert_eq!((&a * &b + 1).eval()?.to_vec()?, [3; 5]);
    assert_eq!(jit.cache_stats().compiles - before.compiles, 2);
    Ok(())
}

fn broadcasting_rows_and_scalars(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let m = arrays.matrix((0..12).map(|i| i as f32).collect(), 3, 4)?;
    let row = arrays.vector(vec![10.0f32, 20.0, 30.0, 40.0])?;
    let one = arrays.vector(vec![0.5f32])?;
    let y = ((&m + &row) * &one - 1.0).eval()?;
    assert_eq!(y.shape().to_string(), "3x4");
    let want = (0..12).map(|i| (i as f32 + 10.0 * (i % 4 + 1) as f32) * 0.5 - 1.0);
    assert_eq!(y.to_vec()?, want.collect::<Vec<_>>());
    Ok(())
}

fn functions_of_the_builder_are_fused(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x = arrays.vector((0..50).collect::<Vec<i32>>())?;
    let shift = 7;
    let f = ElementFn::build(move |[v]| (v % 2).eq(0).select(v + shift, -v));
    let y = (&x + 1).map::<i32>(f);
    let y = broadcast::<_, i32>((y, &x), ElementFn::build(|[a, b]| a * b)).eval()?;
    let want = |i: i32| {
        (if (i + 1) % 2 == 0 {
            i + 1 + shift
        } else {
            -(i + 1)
        }) * i
    };
    assert_eq!(y.to_vec()?, (0..50).map(want).collect::<Vec<_>>());
    assert_eq!(arrays.launches(), 1);
    Ok(())
}

fn device_functions_are_fused(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let host: Vec<f64> = (0..300).map(|i| f64::from(i) * 0.125).collect();
    let (x, narrow) = (
        arrays.vector(host.clone())?,
        arrays.vector(host.iter().map(|&x| x as f32).collect())?,
    );
    let before = jit.cache_stats().compiles;
    let y = (x.map(device!(polynomial)) - 1.0).map(device!(|v| v.max(10.0)));
    assert_eq!(y.eval()?.len(), 300);
    assert_eq!(
        (arrays.launches(), jit.cache_stats().compiles - before),
        (1, 1)
    );
    for (x, y) in host.iter().zip(y.eval()?.to_vec()?) {
        assert_eq!(y, (polynomial(*x) - 1.0).max(10.0), "of {x}");
    }
    // A generic function is one for each type.
    let y = narrow.map(device!(polynomial)).eval()?.to_vec()?;
    assert_eq!(y[8], polynomial(1.0f32));
    let y = narrow.map(device!(polynomial::<f32>)).eval()?.to_vec()?;
    assert_eq!(y[16], polynomial(2.0f32));
    Ok(())
}

fn captured_numbers_are_parameters(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x = arrays.vector(vec![1.0f32, 2.0, 3.0])?;
    let before = jit.cache_stats().compiles;
    for (scale, offset) in [(2.0, Point { x: 3, y: 4 }), (-1.5, Point { x: 0, y: -9 })] {
        let shift = offset.y;
        let y = x.map(device!(|v: f32| v * scale + (offset.x + shift) as f32));
        let want = |v: f32| v * scale + (offset.x + shift) as f32;
        assert_eq!(y.eval()?.to_vec()?, [1.0, 2.0, 3.0].map(want));
    }
    assert_eq!(
        (arrays.launches(), jit.cache_stats().compiles - before),
        (2, 1)
    );
    // A constant is in the code, and the closure has the value that its variable had.
    const LIMIT: f32 = 2.5;
    let mut add = 1.0;
    let y = x.map(device!(|v| v.min(LIMIT) + add));
    add += 1.0;
    assert_eq!(y.eval()?.to_vec()?, [2.0, 3.0, 3.5]);
    assert_eq!(
        x.map(device!(|v| v + add)).eval()?.to_vec()?,
        [3.0, 4.0, 5.0]
    );
    Ok(())
}

fn each_closure_is_a_kernel(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x = arrays.vector(vec![5i32, 6])?;
    let before = jit.cache_stats().compiles;
    let double = device!(|v: i32| v * 2);
    let triple = device!(|v: i32| v * 3);
    for _ in 0..2 {
        assert_eq!(x.map(double.clone()).eval()?.to_vec()?, [10, 12]);
        assert_eq!(x.map(triple.clone()).eval()?.to_vec()?, [15, 18]);
        let both = x.map(double.clone()).map(triple.clone());
        assert_eq!(both.eval()?.to_vec()?, [30, 36]);
    }
    assert_eq!(
        (arrays.launches(), jit.cache_stats().compiles - before),
        (6, 3)
    );
    Ok(())
}

fn results_of_other_types(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x = arrays.vector(vec![-2.5f32, 0.0, 7.0])?;
    let negative: Array<bool> = x.map(device!(|v| v < 0.0)).eval()?;
    assert_eq!(negative.to_vec()?, [true, false, false]);
    // Structs in the middle of an expression, and out of it.
    let points = x.map(device!(|v| Point { x: v as i64, y: 1 }));
    let sums = points.clone().map(device!(|p| p.x + p.y)).eval()?;
    assert_eq!(sums.to_vec()?, [-1i64, 1, 8]);
    let parts = points
        .map(device!(|Point { x, y }| Point { x: y, y: x }))
        .eval()?;
    assert_eq!(parts.to_vec()?[2], Point { x: 1, y: 7 });
    assert_eq!(arrays.launches(), 3);
    Ok(())
}

fn several_arguments(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let m = arrays.matrix((0..6).map(f64::from).collect(), 2, 3)?;
    let row = arrays.vector(vec![10.0f64, 20.0, 30.0])?;
    let y = broadcast((&m, &row, 0.5), device!(lerp)).eval()?;
    let want = |i: i32| lerp(f64::from(i), f64::from(i % 3 + 1) * 10.0, 0.5);
    assert_eq!(y.shape(), m.shape());
    assert_eq!(y.to_vec()?, (0..6).map(want).collect::<Vec<_>>());
    // Different types, one array twice, an expression.
    let y = broadcast(
        (&m, &m * 2.0, 3i32, true, &m),
        device!(|a, b, n, flag, c| if flag { (a + b) as i32 * n } else { c as i32 }),
    );
    assert_eq!(y.eval()?.to_vec()?, [0, 9, 18, 27, 36, 45]);
    assert_eq!(arrays.launches(), 2);
    let eight = broadcast(
        (&m, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0),
        device!(
            |a: f64, b: f64, c: f64, d: f64, e: f64, f: f64, g: f64, h: f64| {
                a + b + c + d + e + f + g + h
            }
        ),
    );
    assert_eq!(eight.eval()?.to_vec()?[5], 33.0);
    Ok(())
}

fn names_in_closures(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x = arrays.vector(vec![1i32, 2, 3])?;
    let (n, v, step) = (3, 100, 10);
    let y = x.map(device!(|v| {
        const SMALL: i32 = 1;
        let square = |w: i32| w * w + step;
        let mut sum = 0;
        for i in 0..n {
            let n = i + SMALL;
            sum += n;
        }
        let step = match v {
            1 => step,
            other => other,
        };
        sum + square(v) + step
    }));
    let want = |v: i32| 6 + v * v + 10 + if v == 1 { 10 } else { v };
    assert_eq!(y.eval()?.to_vec()?, [want(1), want(2), want(3)]);
    assert_eq!((n, v, step), (3, 100, 10));
    Ok(())
}

/// `x` where it is above `limit`, else zero, of any float.
fn above<T: Float + KernelType>(x: &Array<T>, limit: T) -> Expr<T> {
    x.map(device!(|v| if v > limit { v } else { T::ZERO }))
}

/// A tenth of `x`, less one, of any float.
fn tenth<T: Float + KernelType>(x: &Array<T>) -> Expr<T> {
    x.map(device!(|v| v * T::from_f64(0.1) - T::from_i32(1)))
}

fn closures_in_generic_functions(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x = arrays.vector(vec![1.0f32, 2.0])?;
    assert_eq!(above(&x, 1.5).eval()?.to_vec()?, [0.0, 2.0]);
    assert_eq!(tenth(&x).eval()?.to_vec()?, [0.1f32 - 1.0, 0.2 - 1.0]);
    let x = arrays.vector(vec![1.0f64, 2.0])?;
    assert_eq!(above(&x, 0.5).eval()?.to_vec()?, [1.0, 2.0]);
    let tenths = tenth(&x).eval()?.to_vec()?;
    assert!((tenths[1] + 0.8).abs() < 1e-15, "{tenths:?}");
    Ok(())
}

/// An expression with names of the macro and of its caller.
macro_rules! scaled {
    ($x:expr, $by:ident, $shift:expr) => {
        $x.map(device!(|v| {
            let inner = v * $by;
            inner + $shift
        }))
    };
}

fn closures_in_macros(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x = arrays.vector(vec![1.0f64, 2.0])?;
    let before = jit.cache_stats().compiles;
    for (by, offset) in [(3.0, 0.5), (4.0, 8.0)] {
        let y = scaled!(x, by, offset + 0.25);
        let want = [1.0, 2.0].map(|v| v * by + offset + 0.25);
        assert_eq!(y.eval()?.to_vec()?, want);
    }
    assert_eq!(jit.cache_stats().compiles - before, 1);
    // Another variable than the one of this name in the macro.
    let (by, inner) = (2.0, 100.0);
    assert_eq!(scaled!(x, by, inner).eval()?.to_vec()?, [102.0, 104.0]);
    Ok(())
}

fn sums_and_user_reductions(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    for n in [0usize, 1, 31, 256, 257, 5000] {
        let host: Vec<i64> = (0..n as i64).map(|i| i * i - 7).collect();
        let x = arrays.vector(host.clone())?;
        assert_eq!(x.sum()?, host.iter().sum::<i64>());
        let before = jit.cache_stats().compiles;
        let largest = x.reduce(device!(|a, b| a.max(b)), i64::MIN)?;
        assert_eq!(largest, host.iter().copied().max().unwrap_or(i64::MIN));
        // Launches of one kernel, compiled in the first round.
        assert_eq!(jit.cache_stats().compiles - before, u64::from(n == 0));
    }
    let halves = arrays.vector(vec![0.5f32; 4096])?;
    assert_eq!(halves.sum()?, 2048.0);
    Ok(())
}

fn reduction_of_a_struct(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let points = arrays.vector((0..3000).map(|i| Point { x: i, y: -i }).collect())?;
    let sum = points.reduce(device!(add), Point { x: 0, y: 0 })?;
    let want: i64 = (0..3000).sum();
    assert_eq!(sum, Point { x: want, y: -want });
    Ok(())
}

/// A struct `P` of these fields, and what arrays do with it.
macro_rules! arrays_of_p {
    ($arrays:ident, $number:ty, $first:ident $second:ident) => {{
        #[derive(KernelType, Copy, Clone, Debug, PartialEq)]
        #[repr(C)]
        struct P {
            $first: $number,
            $second: $number,
        }
        let p = |i: i32| P {
            $first: i as $number,
            $second: (2 * i) as $number,
        };
        let host: Vec<P> = (0..100).map(p).collect();
        let x = $arrays.vector(host.clone())?;
        assert_eq!(x.expr().eval()?.to_vec()?, host);
        let twice = device!(|v: P| P {
            $first: v.$first + v.$first,
            $second: v.$second,
        });
        let doubled = x.map(twice).eval()?.to_vec()?;
        assert!(
            doubled
                .iter()
                .zip(&host)
                .all(|(d, h)| d.$first == h.$first + h.$first)
        );
        let add = device!(|a: P, b: P| P {
            $first: a.$first + b.$first,
            $second: a.$second + b.$second,
        });
        assert_eq!(x.reduce(add, p(0))?, p(4950));
    }};
}

/// Types of one path: what `type_name` says of them is one text, and in a notebook, where the second is
/// the first redefined, their `TypeId`s are one, too.
fn types_of_one_name_are_told_apart(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    arrays_of_p!(arrays, f32, a b);
    arrays_of_p!(arrays, f64, a b);
    arrays_of_p!(arrays, i64, a b);
    arrays_of_p!(arrays, f32, b a);
    arrays_of_p!(arrays, f32, x y);
    Ok(())
}

fn reduction_of_an_expression(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    for n in [0usize, 1, 300, 5000] {
        let host: Vec<i64> = (0..n as i64).map(|i| i * 37 % 101 - 50).collect();
        let x = arrays.vector(host.clone())?;
        let launches = arrays.launches();
        // The largest distance from `center`, modulo `modulus` in the operation.
        for center in [3, -8] {
            let distance = x.map(device!(|v| (v - center).abs()));
            let largest = distance.reduce(device!(|a, b| if a > b { a } else { b }), 0)?;
            let want = host.iter().map(|v| (v - center).abs()).max();
            assert_eq!(largest, want.unwrap_or(0));
        }
        // On a GPU the last block folds what the others have left.
        let at_once = matches!(jit.target(), Target::Ptx(_) | Target::Custom(_));
        let folds = if n > 256 && !at_once { 2 } else { 1 };
        assert_eq!(arrays.launches() - launches, 2 * folds);
        assert_eq!((&x * 2 + 1).sum()?, host.iter().map(|v| 2 * v + 1).sum());
    }
    // What an operation captures is a parameter, too.
    let x = arrays.vector((1..=1000).collect::<Vec<u32>>())?;
    let before = jit.cache_stats().compiles;
    for modulus in [97u32, 101] {
        let product = x.reduce(device!(|a, b| a * b % modulus), 1)?;
        let want = (1..=1000).fold(1, |a, b| a * b % modulus);
        assert_eq!(product, want);
    }
    assert_eq!(jit.cache_stats().compiles - before, 1);
    // Rows go with a matrix as in any expression.
    let m = arrays.matrix((0..12).map(|i| i as f32).collect(), 3, 4)?;
    let row = arrays.vector(vec![1.0f32, 0.0, 0.0, 2.0])?;
    assert_eq!((&m * &row).sum()?, 12.0 + 42.0);
    Ok(())
}

fn wrong_arrays_are_errors(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let (a, b) = (
        arrays.vector(vec![1.0f32; 3])?,
        arrays.vector(vec![1.0f32; 4])?,
    );
    assert!(matches!((&a + &b).eval(), Err(ArrayError::Shape(_))));
    assert!(matches!(
        arrays.matrix(vec![1.0f32; 5], 2, 3),
        Err(ArrayError::Count { .. })
    ));
    let three = broadcast((&a, 1.0, &b), device!(|a, c, b| a + b * c));
    assert!(matches!(three.eval(), Err(ArrayError::Shape(_))));
    assert!(matches!(three.sum(), Err(ArrayError::Shape(_))));
    let n = 3;
    let power = arrays
        .vector(vec![2.0f32, -1.0])?
        .map(device!(|v| v.powi(n)));
    assert_eq!(power.eval()?.to_vec()?, [8.0, -1.0]);
    let numbers = broadcast((1.0, 2.0), device!(|a: f32, b: f32| a + b));
    assert!(matches!(numbers.eval(), Err(ArrayError::NoArray)));
    // What rustc cannot see is an error that names the line.
    let line = line!() + 1;
    let first = a.map(device!(|v| [v; 300][0])).eval();
    let error = first.expect_err("the array is too long").to_string();
    assert!(error.contains("more than 256 elements"), "{error}");
    assert!(error.contains(&format!("arrays.rs:{line}:")), "{error}");
    let wrong = ElementFn::<(f32,), i32>::build(|[v]| v + 1.0);
    assert!(matches!(a.map(wrong).eval(), Err(ArrayError::Kernel(_))));
    let flags = arrays.vector(vec![true, false])?;
    assert!(matches!(
        (&flags + &flags).eval(),
        Err(ArrayError::Kernel(_))
    ));
    Ok(())
}

/// What `?` makes of an array's errors in a function that gives what Kiln's functions give.
fn errors_of_arrays_are_errors_of_kiln(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let sum = |a: Vec<f32>, b: Vec<f32>| -> kiln::Result<f32> {
        Ok((arrays.vector(a)? + arrays.vector(b)?).sum()?)
    };
    assert_eq!(sum(vec![1.0; 3], vec![2.0; 3])?, 9.0);
    let refused = sum(vec![1.0; 3], vec![1.0; 4]).expect_err("3 do not go with 4");
    assert!(
        matches!(refused.library(), Some(ArrayError::Shape(_))),
        "{refused}"
    );
    let text = "arrays of shape 3 and 4 do not go together";
    assert!(refused.to_string().starts_with(text), "{refused}");
    let shapes = || -> kiln::Result<Shape> { Ok(Shape::new(3).broadcast(&Shape::new(4))?) };
    let refused = shapes().expect_err("3 do not go with 4");
    assert!(refused.library::<ArrayError>().is_some(), "{refused}");
    // What the kernel met is told as if the program had launched it.
    let wrong = ElementFn::<(f32,), i32>::build(|[v]| v + 1.0);
    let built =
        || -> kiln::Result<Array<i32>> { Ok(arrays.vector(vec![1.0f32])?.map(wrong).eval()?) };
    let refused = built().expect_err("a float is no integer");
    assert!(matches!(refused, kiln::Error::Describe(_)), "{refused}");
    Ok(())
}
