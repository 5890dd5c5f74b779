//! Elements that are looked up: in order, by keys, in segments; and arrays repeated.

use kiln::array::{ArrayError, Side};
use kiln::prelude::*;

use super::{Outcome, chapter};

chapter![
    values_go_into_an_order,
    histograms_of_edges,
    segments_are_folded,
    segments_are_scanned,
    elements_along_a_dimension,
    the_largest_and_the_order_of_keys,
    arrays_again_and_again,
    what_cannot_be_looked_up,
];

fn values_go_into_an_order(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    for len in [0usize, 1, 2, 31, 1000] {
        let mut host: Vec<f32> = (0..len).map(|i| (i * 37 % 50) as f32).collect();
        host.sort_by(f32::total_cmp);
        if len > 30 {
            host[len - 1] = f32::NAN;
        }
        let sorted = arrays.vector(host.clone())?;
        let values: Vec<f32> = (-2..110)
            .map(|i| i as f32 / 2.0)
            .chain([f32::NAN, f32::INFINITY])
            .collect();
        let of = |side| {
            sorted
                .searchsorted(&arrays.vector(values.clone())?, side)?
                .eval()?
                .to_vec()
        };
        let less = |a: f32, b: f32| a < b || (b.is_nan() && !a.is_nan());
        let left: Vec<u32> = values
            .iter()
            .map(|v| host.partition_point(|x| less(*x, *v)) as u32)
            .collect();
        let right: Vec<u32> = values
            .iter()
            .map(|v| host.partition_point(|x| !less(*v, *x)) as u32)
            .collect();
        assert_eq!((of(Side::Left)?, of(Side::Right)?), (left, right), "{len}");
    }
    let sorted = arrays.vector(vec![1u8, 3, 5])?;
    let twice = sorted.flip(0)?.flip(0)?.searchsorted(4u8, Side::Left);
    assert!(twice.is_ok_and(|one| one.eval().is_ok()));
    Ok(())
}

fn histograms_of_edges(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let host: Vec<f64> = (0..5000)
        .map(|i| f64::from(i * 7919 % 2003) / 100.0)
        .chain([f64::NAN])
        .collect();
    let edges = [0.0, 1.0, 4.0, 4.5, 10.0];
    let want = (0..4).map(|bin| {
        let is_in =
            |x: &&f64| **x >= edges[bin] && (**x < edges[bin + 1] || bin == 3 && **x == 10.0);
        host.iter().filter(is_in).count() as u32
    });
    let x = arrays.vector(host.clone())?;
    let counts = x.histogram(&arrays.vector(edges.to_vec())?)?;
    assert_eq!(counts.to_vec()?, want.collect::<Vec<_>>());
    let numbers = arrays.vector(vec![-3i32, 0, 5, 9, 10, 11])?;
    let edges = arrays.vector(vec![0, 5, 10])?;
    assert_eq!(numbers.histogram(&edges)?.to_vec()?, [1, 3]);
    Ok(())
}

fn segments_are_folded(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x = arrays.arange(0i64, 1000, 1)?;
    let starts = arrays.vector(vec![0u32, 1, 1, 400, 999, 1000, 2000])?;
    let sums = x
        .reduce_segments(&starts, device!(|a, b| a + b), 0)?
        .eval()?;
    let sum = |from: i64, to: i64| (from..to).sum::<i64>();
    assert_eq!(
        sums.to_vec()?,
        [0, 0, sum(1, 400), sum(400, 999), 999, 0, 0]
    );
    // What does not commute, what captures, and views.
    let last = x
        .flip(0)?
        .reduce_segments(&starts, device!(|_a, b| b), -1)?;
    assert_eq!(last.eval()?.get([2])?, 600);
    for least in [3i64, 500] {
        let count = x.reduce_segments(
            &starts,
            device!(|a, b| if b >= least { a + 1 } else { a }),
            0,
        )?;
        assert_eq!(
            count.eval()?.get([2])?,
            (1..400).filter(|i| *i >= least).count() as i64
        );
    }
    Ok(())
}

/// A rotation by so many of four, or a turn round: what does not commute.
#[device_fn]
fn turned(a: [i16; 4], b: [i16; 4]) -> [i16; 4] {
    [
        a[b[0] as usize],
        a[b[1] as usize],
        a[b[2] as usize],
        a[b[3] as usize],
    ]
}

/// Segments of no, one and many elements, some longer than a tile, some before the first start, and beyond the end.
fn segments_are_scanned(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let op = device!(turned);
    for (len, starts) in [
        (0usize, vec![]),
        (1, vec![]),
        (1, vec![0]),
        (33, vec![0u32, 1, 1, 2, 31, 32, 33, 70]),
        (67, vec![5]),
        (9001, vec![3, 7, 7, 3000, 8999, 9000]),
    ] {
        let turn = |i: usize| [[1i16, 2, 3, 0], [3, 2, 1, 0], [1, 0, 2, 3]][i * i % 7 % 3];
        let x: Vec<[i16; 4]> = (0..len).map(turn).collect();
        let mut expected = x.clone();
        for i in (1..len).filter(|i| !starts.contains(&(*i as u32))) {
            expected[i] = turned(expected[i - 1], x[i]);
        }
        let at = arrays.vector(starts)?;
        let found = arrays.vector(x)?.accumulate_segments(&at, op.clone())?;
        assert_eq!(found.to_vec()?, expected, "{len}");
    }
    Ok(())
}

/// Each segment in order beside the host's, of floats with NaNs, by views.
fn sorts_segments(arrays: &Arrays) -> Outcome {
    for (len, starts) in [
        (0usize, vec![0u32]),
        (31, vec![]),
        (1000, vec![10u32, 10, 40, 997, 2000]),
    ] {
        let host: Vec<f32> = (0..len).map(|i| (i * 7919 % 211) as f32 - 100.0).collect();
        let host: Vec<f32> = host
            .into_iter()
            .map(|x| if x == 7.0 { f32::NAN } else { x })
            .collect();
        let ends = starts.iter().copied().chain([len as u32]);
        let ends: Vec<usize> = ends.map(|end| (end as usize).min(len)).collect();
        let mut order: Vec<u32> = (0..len as u32).collect();
        for (start, end) in std::iter::once(0).chain(ends.clone()).zip(ends) {
            let key = |at: u32| host[at as usize];
            let less = |a: &u32, b: &u32| {
                key(*a)
                    .is_nan()
                    .cmp(&key(*b).is_nan())
                    .then(key(*a).total_cmp(&key(*b)))
            };
            order[start..end].sort_by(less);
        }
        let (x, at) = (
            arrays.vector(host)?.flip(0)?.copy()?.flip(0)?,
            arrays.vector(starts)?,
        );
        assert_eq!(x.argsort_segments(&at)?.to_vec()?, order, "{len}");
        let bits = |x: Vec<f32>| x.into_iter().map(f32::to_bits).collect::<Vec<_>>();
        let sorted = bits(x.sort_segments(&at)?.to_vec()?);
        assert_eq!(sorted, bits(x.take(&arrays.vector(order)?, 0)?.to_vec()?));
    }
    Ok(())
}

fn elements_along_a_dimension(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x = arrays.indices((4, 5)).cast::<i32>().eval()?;
    let which = arrays.array(vec![3u32, 0, 1, 2, 3, 0, 0, 0, 0, 0], (2, 5))?;
    let taken = x.take_along(&which, 0)?;
    assert_eq!(taken.eval()?.to_vec()?, [15, 1, 7, 13, 19, 0, 1, 2, 3, 4]);
    let turned = x.t().take_along(which.t().expr(), 1)? + 100;
    assert_eq!(
        turned.eval()?.t().to_vec()?,
        [115, 101, 107, 113, 119, 100, 101, 102, 103, 104]
    );
    // A number of its own that is not there is a fault, also where the buffer has an element.
    let jit = super::exact(jit);
    let arrays = Arrays::new(&jit);
    let x = arrays.vector(vec![1, 2, 3])?.slice(s![..2])?;
    let beyond = arrays.vector(vec![2u32])?;
    let result = x.take_along(&beyond, 0)?.eval().and_then(|x| x.to_vec());
    let text = result.expect_err("there are two").to_string();
    assert!(text.contains(&super::array_scatter::beyond(2, 2)), "{text}");
    Ok(())
}

fn the_largest_and_the_order_of_keys(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let host: Vec<i32> = (0..600).map(|i| i * 7919 % 1009 - 300).collect();
    let x = arrays.array(&host, (3, 200))?;
    let (largest, which) = x.top_k(4, 1)?;
    for row in 0..3 {
        let mut sorted = host[row * 200..(row + 1) * 200].to_vec();
        sorted.sort_by_key(|x| -x);
        assert_eq!(largest.row(row as isize)?.to_vec()?, sorted[..4]);
        let first = which.get([row, 0])? as usize;
        assert_eq!(host[row * 200 + first], sorted[0]);
    }
    assert_eq!(x.top_k(0, 0)?.0.dims(), [0, 200]);
    let keys = arrays.array(
        host.iter().map(|x| (x % 7) as f32).collect::<Vec<_>>(),
        (3, 200),
    )?;
    let sorted = x.sort_by_key(&keys, 1)?.row(1)?.to_vec()?;
    let mut want = host[200..400].to_vec();
    want.sort_by_key(|x| x % 7);
    assert_eq!(sorted, want);
    sorts_segments(&arrays)
}

fn arrays_again_and_again(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x = arrays.arange(0i32, 6, 1)?.reshape((2, 3))?;
    assert_eq!(
        x.t().tile([1, 2])?.to_vec()?,
        [0, 3, 0, 3, 1, 4, 1, 4, 2, 5, 2, 5]
    );
    assert_eq!(x.tile([2, 1])?.dims(), [4, 3]);
    assert_eq!(
        x.repeat(2, 0)?.to_vec()?,
        [0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5]
    );
    assert_eq!(x.repeat(2, -1)?.row(1)?.to_vec()?, [3, 3, 4, 4, 5, 5]);
    assert_eq!(
        (x.repeat(0, 1)?.dims(), x.tile([0, 1])?.dims()),
        (&[2, 0][..], &[0, 3][..])
    );
    Ok(())
}

fn what_cannot_be_looked_up(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x = arrays.ones::<f32>((2, 3))?;
    let text = |error: Option<ArrayError>| error.expect("it is refused").to_string();
    assert_eq!(
        text(x.searchsorted(1.0, Side::Left).err()),
        "the elements that are searched are a vector; this is an array of shape 2x3"
    );
    assert_eq!(
        text(x.histogram(&arrays.ones(1)?).err()),
        "the edges of a histogram are a vector of at least 2 elements; this is an array of shape 1"
    );
    assert_eq!(
        text(
            x.accumulate_segments(&arrays.zeros(1)?, device!(|a, b| a + b))
                .err()
        ),
        "the elements of segments are a vector; this is an array of shape 2x3"
    );
    assert_eq!(
        text(x.row(0)?.sort_segments(&arrays.zeros((1, 1))?).err()),
        "the starts of segments are a vector; this is an array of shape 1x1"
    );
    let elsewhere = Arrays::new(&Jit::on(Device::cpu()));
    match x.row(0)?.sort_segments(&elsewhere.zeros(1)?) {
        Err(ArrayError::Foreign { owner, device }) => {
            let id = |arrays: &Arrays| arrays.jit().device().info().id;
            assert_eq!((owner, device), (id(&elsewhere), id(&arrays)));
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(x.top_k(4, 1), Err(ArrayError::Window { .. })));
    assert!(matches!(x.tile([2]), Err(ArrayError::Items { .. })));
    assert!(matches!(
        x.sort_by_key(&x.t(), 0),
        Err(ArrayError::Shape(_))
    ));
    assert!(matches!(
        x.take_along(&arrays.zeros::<u32>(3)?, 0),
        Err(ArrayError::Shape(_))
    ));
    Ok(())
}
