//! Expressions that are evaluated several times: into new arrays, into arrays that are there, that they read, or that have
//! other shapes, and in other streams. What the first evaluation finds out is kept for the next, so each is checked.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use kiln::array::ElementFn;
use kiln::prelude::*;

use super::{Outcome, chapter};

chapter![
    new_results_each_time,
    results_in_arrays_that_are_read,
    results_in_views_and_larger_arrays,
    results_in_other_streams,
    parts_of_buffers_again,
    closures_that_change,
    arrays_of_no_element_again,
];

fn new_results_each_time(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x = arrays.vector(vec![1.0f32, 2.0, 3.0])?;
    let twice = 2.0 * &x + 1.0;
    let first = twice.eval()?;
    let mut there = arrays.zeros::<f32>(3)?;
    twice.eval_into(&mut there)?;
    let second = twice.clone().eval()?;
    for y in [&first, &there, &second] {
        assert_eq!(y.to_vec()?, [3.0, 5.0, 7.0]);
    }
    // Each has a buffer of its own.
    there += 1.0;
    let sums = (&first + &there).eval()?;
    assert_eq!(sums.to_vec()?, [7.0, 11.0, 15.0]);
    assert_eq!(second.to_vec()?, [3.0, 5.0, 7.0]);
    // As part of another one it is computed anew.
    let more = (&twice * &x).eval()?;
    assert_eq!(more.to_vec()?, [3.0, 10.0, 21.0]);
    // `zeros` is a launch on some devices only.
    let made = arrays.launches();
    twice.eval()?;
    twice.eval_into(&mut there)?;
    assert_eq!(arrays.launches() - made, 2);
    Ok(())
}

/// What an expression reads stays as it is for it, whatever is assigned to the array.
fn results_in_arrays_that_are_read(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let mut x = arrays.vector(vec![1, 2, 3, 4])?;
    let mut y = arrays.vector(vec![10, 20, 30, 40])?;
    let sums = &x + &y;
    for _ in 0..2 {
        assert_eq!(sums.eval()?.to_vec()?, [11, 22, 33, 44]);
        x.assign(&sums)?;
        assert_eq!(x.to_vec()?, [11, 22, 33, 44]);
        sums.eval_into(&mut y)?;
        assert_eq!(y.to_vec()?, [11, 22, 33, 44]);
    }
    // Now the buffers of both are others, and nobody else has them.
    for _ in 0..3 {
        x.assign(&x + &y)?;
    }
    assert_eq!(x.to_vec()?, [44, 88, 132, 176]);
    let turned = x.slice(s![..;-1])? + 0;
    x.assign(&turned)?;
    x.assign(&turned)?;
    assert_eq!(x.to_vec()?, [176, 132, 88, 44]);
    assert_eq!(turned.eval()?.to_vec()?, [176, 132, 88, 44]);
    Ok(())
}

fn results_in_views_and_larger_arrays(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let row = arrays.vector(vec![1u32, 2, 3])?;
    let next = &row + 1;
    let mut y = arrays.zeros::<u32>((2, 3))?;
    let mut flat = arrays.zeros::<u32>(3)?;
    for _ in 0..2 {
        next.eval_into(&mut flat)?;
        assert_eq!(flat.to_vec()?, [2, 3, 4]);
        y.assign(&next)?;
        assert_eq!(y.to_vec()?, [2, 3, 4, 2, 3, 4]);
        y.assign(0)?;
        y.slice_mut(s![1, ..])?.assign(&next)?;
        assert_eq!(y.to_vec()?, [0, 0, 0, 2, 3, 4]);
    }
    let columns = &y.t() + 0;
    let mut turned = arrays.zeros::<u32>((3, 2))?;
    for _ in 0..2 {
        assert_eq!(columns.eval()?.to_vec()?, [0, 2, 0, 3, 0, 4]);
        columns.eval_into(&mut turned)?;
        assert_eq!(turned.to_vec()?, [0, 2, 0, 3, 0, 4]);
        let wrong = columns.eval_into(&mut flat).expect_err("of another shape");
        assert!(wrong.to_string().contains("3x2"), "{wrong}");
    }
    Ok(())
}

fn results_in_other_streams(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let stream = jit.stream()?;
    let beside = arrays.on(&stream)?;
    let x = arrays.arange(0u32, 300, 1)?;
    let square = &x * &x;
    let want: Vec<u32> = (0..300).map(|i| i * i).collect();
    let (mut here, mut there) = (arrays.zeros::<u32>(300)?, beside.zeros::<u32>(300)?);
    for _ in 0..2 {
        here.assign(&square)?;
        there.assign(&square)?;
        assert_eq!(here.to_vec()?, want);
        assert_eq!(there.to_vec()?, want);
        assert_eq!(square.eval()?.to_vec()?, want);
    }
    Ok(())
}

fn parts_of_buffers_again(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x = arrays.arange(0u32, 1000, 1)?;
    for (from, to) in [(0, 400), (1, 401), (600, 1000)] {
        let part = x.slice(s![from..to])? * 3 + x.slice(s![from..to;1])?;
        let want: Vec<u32> = (from as u32..to as u32).map(|i| 4 * i).collect();
        for _ in 0..2 {
            assert_eq!(part.eval()?.to_vec()?, want, "{from}");
        }
    }
    Ok(())
}

/// A closure that captures something is asked at each evaluation.
fn closures_that_change(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x = arrays.vector(vec![1u32, 2])?;
    let by = Arc::new(AtomicU32::new(1));
    let seen = by.clone();
    let scaled: ElementFn<(u32,), u32> =
        ElementFn::build(move |[x]| x * seen.load(Ordering::Relaxed));
    let scaled = x.map(scaled);
    for factor in [1, 5, 7] {
        by.store(factor, Ordering::Relaxed);
        assert_eq!(scaled.eval()?.to_vec()?, [factor, 2 * factor]);
    }
    Ok(())
}

fn arrays_of_no_element_again(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x = arrays.zeros::<f32>((0, 3))?;
    let (more, mut y) = (&x + 1.0, arrays.zeros::<f32>((0, 3))?);
    for _ in 0..2 {
        assert_eq!(more.eval()?.dims(), [0, 3]);
        more.eval_into(&mut y)?;
    }
    assert_eq!(y.to_vec()?, []);
    Ok(())
}
