//! Arrays: fused broadcast, reductions, counting launches and compilations.

use kiln::array::ArrayError;
use kiln::prelude::*;

use super::{Outcome, chapter};

chapter![
    an_expression_is_one_kernel,
    the_same_expression_compiles_once,
    broadcasting_rows_and_scalars,
    closures_are_fused,
    sums_and_user_reductions,
    reduction_of_a_struct,
    wrong_arrays_are_errors,
];

kiln::core::kernel_type! {
    /// A point of the plane.
    #[repr(C)]
    pub struct Point {
        x: i64,
        y: i64,
    }
}

fn an_expression_is_one_kernel(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let host: Vec<f64> = (0..1000).map(|i| f64::from(i) * 0.01).collect();
    let x = arrays.vector(host.clone())?;
    let before = jit.cache_stats();
    let t = 2.0 * x.powi(2) + 6.0 * x.powi(3) - x.sqrt();
    let y = t
        .map::<f64, _>(|t| 3.0 * t.powi(2) + 5.0 * t + 2.0)
        .eval()?;
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

fn closures_are_fused(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x = arrays.vector((0..50).collect::<Vec<i32>>())?;
    let shift = 7;
    let y = (&x + 1)
        .map::<i32, _>(move |v| (v % 2).eq(0).select(v + shift, -v))
        .zip::<i32, i32, _>(&x, |a, b| a * b)
        .eval()?;
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

fn sums_and_user_reductions(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    for n in [0usize, 1, 31, 256, 257, 5000] {
        let host: Vec<i64> = (0..n as i64).map(|i| i * i - 7).collect();
        let x = arrays.vector(host.clone())?;
        assert_eq!(x.sum()?, host.iter().sum::<i64>());
        let largest = x.reduce(|a, b| a.max(b), i64::MIN)?;
        assert_eq!(largest, host.iter().copied().max().unwrap_or(i64::MIN));
    }
    let halves = arrays.vector(vec![0.5f32; 4096])?;
    assert_eq!(halves.sum()?, 2048.0);
    Ok(())
}

fn reduction_of_a_struct(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let points = arrays.vector((0..3000).map(|i| Point { x: i, y: -i }).collect())?;
    let sum = points.reduce(
        |a, b| {
            let parts = [a.field("x") + b.field("x"), a.field("y") + b.field("y")];
            a.builder().construct(a.ty(), &parts)
        },
        Point { x: 0, y: 0 },
    )?;
    let want: i64 = (0..3000).sum();
    assert_eq!(sum, Point { x: want, y: -want });
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
    let flags = arrays.vector(vec![true, false])?;
    assert!(matches!(
        (&flags + &flags).eval(),
        Err(ArrayError::Kernel(_))
    ));
    Ok(())
}
