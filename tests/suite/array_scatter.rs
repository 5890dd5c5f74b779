//! Elements written where indices name them, beside `ndarray`: along all dimensions, of views, several for one element.

use expect_test::{Expect, expect};
use kiln::array::ArrayError;
use kiln::prelude::*;
use ndarray::{Array3, ArrayView3, Axis};

use super::{Outcome, chapter};

chapter![
    values_are_written_along_each_dimension,
    structs_are_written_whole,
    values_are_folded_where_they_go,
    what_is_shared_stays_as_it_is,
    indices_that_are_not_there,
    what_cannot_be_written,
];

/// A number without an order.
fn number(i: usize) -> usize {
    let mixed = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 40) as usize
}

/// Numbers of a dimension, of which most come several times if there are more than its elements.
fn indices(count: usize, along: usize) -> Vec<u32> {
    (0..count).map(|i| (number(i) % along) as u32).collect()
}

/// What an index after the other makes of an array of the host.
fn on_host<T: Clone>(
    x: &mut Array3<T>,
    (to, axis): (&[u32], usize),
    values: ArrayView3<'_, T>,
    change: impl Fn(&mut T, &T),
) {
    for (i, to) in to.iter().enumerate() {
        let mut place = x.index_axis_mut(Axis(axis), *to as usize);
        place.zip_mut_with(&values.index_axis(Axis(axis), i), &change);
    }
}

const SHAPES: [[usize; 3]; 5] = [[1, 1, 1], [3, 5, 7], [31, 1, 2], [2, 33, 3], [0, 4, 2]];

fn values_are_written_along_each_dimension(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    for dims in SHAPES {
        for (axis, count) in (0..3).flat_map(|axis| [0, 1, 32, 67].map(|count| (axis, count))) {
            let count = if dims[axis] == 0 { 0 } else { count };
            let (to, mut all) = (indices(count, dims[axis].max(1)), dims);
            all[axis] = count;
            let old: Vec<i32> = (0..dims.iter().product()).map(|i| i as i32).collect();
            let new: Vec<i32> = (0..all.iter().product()).map(|i| -1 - i as i32).collect();
            let mut host = Array3::from_shape_vec(dims, old.clone())?;
            let values = ArrayView3::from_shape(all, &new)?;
            on_host(&mut host, (&to, axis), values, |x, v| *x = *v);
            let mut x = arrays.array(old, dims)?;
            let at = arrays.vector(to)?;
            x.scatter(&at, axis as isize, &arrays.array(new, all)?)?;
            assert_eq!(
                x.to_vec()?,
                host.as_standard_layout().as_slice().expect("it is one"),
                "{dims:?} {axis} {count}"
            );
        }
    }
    // A view of values, a view of indices, a view that is written, and a number.
    let mut x = arrays.arange(0i32, 12, 1)?.reshape((3, 4))?.t();
    let values = arrays.arange(100i32, 112, 1)?.reshape((3, 4))?.flip(1)?;
    let to = arrays.vector(vec![9u32, 2, 9, 0])?.slice(s![1..;2])?;
    x.scatter(&to, 1, values.slice(s![..2, ..])?.t())?;
    assert_eq!(
        x.to_vec()?,
        [107, 4, 103, 106, 5, 102, 105, 6, 101, 104, 7, 100]
    );
    x.scatter(&to, -2, 7)?;
    assert_eq!(x.row(0)?.to_vec()?, [7; 3]);
    // What is written may be computed of what was there.
    x.scatter(&to, 0, x.slice(s![1..3, ..])? + 1)?;
    assert_eq!(
        (x.row(0)?.to_vec()?, x.row(2)?.to_vec()?),
        (vec![8; 3], vec![107, 6, 103])
    );
    Ok(())
}

#[derive(Copy, Clone, PartialEq, Debug, KernelType)]
#[repr(C)]
struct Word {
    key: f32,
    text: [u8; 3],
    place: u64,
}

/// Many values for few elements: the last one stays, and none is of two.
fn structs_are_written_whole(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let word = |i: usize| Word {
        key: i as f32,
        text: [i as u8; 3],
        place: i as u64,
    };
    let (to, mut expected) = (indices(5000, 31), vec![word(0); 32]);
    for (i, to) in to.iter().enumerate() {
        expected[*to as usize] = word(i);
    }
    let mut x = arrays.vector(vec![word(0); 32])?;
    let values: Vec<Word> = (0..5000).map(word).collect();
    x.scatter(&arrays.vector(to)?, 0, &arrays.vector(values)?)?;
    assert_eq!(x.to_vec()?, expected);
    Ok(())
}

fn values_are_folded_where_they_go(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    for (axis, count) in [(0, 0), (0, 1), (0, 31), (1, 400), (2, 67)] {
        let (dims, to) = ([5, 13, 6], indices(count, [5, 13, 6][axis]));
        let mut all = dims;
        all[axis] = count;
        let old: Vec<i64> = (0..5 * 13 * 6).map(|i| i << 33).collect();
        let new: Vec<i64> = (0..all.iter().product())
            .map(|i| number(i) as i64)
            .collect();
        let mut host = Array3::from_shape_vec(dims, old.clone())?;
        on_host(
            &mut host,
            (&to, axis),
            ArrayView3::from_shape(all, &new)?,
            |x, v| *x += *v,
        );
        let mut x = arrays.array(old, dims)?;
        x.scatter_add(&arrays.vector(to)?, axis as isize, &arrays.array(new, all)?)?;
        assert_eq!(
            x.to_vec()?,
            host.into_raw_vec_and_offset().0,
            "{axis} {count}"
        );
    }
    // Sums of small numbers are exact in any order.
    let at = arrays.vector(vec![1u32, 3, 1, 1])?;
    let mut x = arrays.zeros::<f32>(4)?;
    x.scatter_add(&at, 0, &arrays.vector(vec![1.0, 2.0, 4.0, 0.5])?)?;
    assert_eq!(x.to_vec()?, [0.0, 5.5, 0.0, 2.0]);
    let mut x = arrays.vector(vec![f32::NAN, f32::NAN, 3.0, 3.0])?;
    x.scatter_min(&at, 0, &arrays.vector(vec![9.0, f32::NAN, 4.0, 5.0])?)?;
    let least = x.to_vec()?;
    assert!(least[0].is_nan());
    assert_eq!(least[1..], [4.0, 3.0, 3.0]);
    // Of 16 bits, beside others of one word; they wrap around.
    let mut x = arrays.vector(vec![1u16, 65_535, 3, 4])?;
    x.scatter_add(&at, 0, 2)?;
    x.scatter_max(&arrays.vector(vec![2u32])?, 0, 9)?;
    assert_eq!(x.to_vec()?, [1, 5, 9, 6]);
    // Of 8 bits.
    let mut x = arrays.vector(vec![1i8, 127, 3, -4, 5])?;
    x.scatter_add(&at, 0, 2)?;
    x.scatter_min(&arrays.vector(vec![2u32])?, 0, -9)?;
    assert_eq!(x.to_vec()?, [1, -123, -9, -2, 5]);
    Ok(())
}

fn what_is_shared_stays_as_it_is(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let mut x = arrays.vector(vec![3u32, 2, 1, 0])?;
    let (clone, part) = (x.clone(), x.slice(s![1..3])?);
    // An array is also its own indices and values.
    x.scatter(&x.clone(), 0, x.clone())?;
    assert_eq!(
        (x.to_vec()?, clone.to_vec()?),
        (vec![0, 1, 2, 3], vec![3, 2, 1, 0])
    );
    let mut own = part.clone();
    own.scatter_add(&arrays.vector(vec![0u32, 0])?, 0, 50)?;
    assert_eq!((own.to_vec()?, part.to_vec()?), (vec![102, 1], vec![2, 1]));
    let address = own.buffer().address();
    own.scatter_add(&arrays.vector(vec![1u32])?, 0, 1)?;
    assert_eq!(
        (own.buffer().address(), own.to_vec()?),
        (address, vec![102, 2])
    );
    Ok(())
}

/// What a fault says of an index that is not there.
pub(super) fn beyond(index: u32, count: u32) -> String {
    let numbers = format!("(left: {index}, right: {count})");
    format!("an index is beyond the array: the index, and how many there are {numbers}")
}

fn indices_that_are_not_there(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let at = arrays.vector(vec![0u32, 3, 1 << 31])?;
    // Whichever thread comes first.
    let is_told =
        |fault: &str| fault.contains(&beyond(3, 3)) || fault.contains(&beyond(1 << 31, 3));
    let text = |x: kiln::Result<Vec<i32>>| x.expect_err("there are three").to_string();
    let of = |x: &Array<i32>| Ok(x.to_vec()?);
    let mut x = arrays.zeros::<i32>((3, 2))?;
    x.scatter(&at, 0, 1)?;
    let fault = text(of(&x));
    assert!(is_told(&fault), "{fault}");
    assert_eq!(x.to_vec()?, [1, 1, 0, 0, 0, 0]);
    x.scatter_add(&at, 0, 1)?;
    let fault = text(of(&x));
    assert!(is_told(&fault), "{fault}");
    assert_eq!(x.to_vec()?, [2, 2, 0, 0, 0, 0]);
    // Twice 2^31 is 0 in 32 bits, where there is an element.
    let fault = text(
        x.take(&at.slice(s![2..])?, 0)
            .map_err(Into::into)
            .and_then(|x| of(&x)),
    );
    assert!(fault.contains(&beyond(1 << 31, 3)), "{fault}");
    Ok(())
}

fn what_cannot_be_written(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let (mut x, at) = (arrays.ones::<f32>((2, 3))?, arrays.vector(vec![1u32])?);
    let refused = |result: Result<(), ArrayError>, text: Expect| {
        text.assert_eq(&result.expect_err("it is refused").to_string());
    };
    let few = arrays.ones::<f32>(2)?;
    let (line, error) = (line!(), x.scatter(&at, 0, &few));
    let error = error.expect_err("there are three");
    let text = error.to_string();
    assert!(
        text.contains(&format!("array_scatter.rs:{line}:")),
        "{text}"
    );
    let text = text.split(" (").next().unwrap_or_default();
    expect!["arrays of shape 1x3 and 2 do not go together element by element; dimensions are compared from the last, and two have to be equal, or one of them 1"].assert_eq(text);
    refused(
        x.scatter_add(&at, 2, 1.0),
        expect![
            "an array of shape 2x3 has no dimension 2; it has 2, counted from 0, or from the end by -1 and below"
        ],
    );
    refused(
        x.scatter(&at.insert_axis(0)?, 0, 1.0),
        expect!["the indices of a scatter are a vector; this is an array of shape 1x1"],
    );
    let mut wide = arrays.ones::<u32>(1)?.broadcast_to(1 << 32)?;
    refused(
        wide.scatter(&at, 0, 1),
        expect![
            "a scatter of an array of shape 4294967296: its indices tell 4294950911 elements apart; go through it in parts, `x.slice(s![a..b])`"
        ],
    );
    Ok(())
}
