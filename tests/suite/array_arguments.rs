//! Arrays as arguments of kernels: slices, views of several dimensions, and what is neither.

use std::ops::Index;

use expect_test::expect;
use kiln::array::{ArrayError, IntoAxes, View1, View2, View2Mut, View3, View3Mut};
use kiln::prelude::*;

use super::{Outcome, chapter};

chapter![
    arrays_are_slices,
    arrays_that_are_no_slices_are_errors,
    what_is_written_is_not_shared,
    elements_by_several_indices,
    elements_of_views_of_the_user,
    an_index_of_each_dimension_is_checked,
    other_views_are_errors,
];

/// `y += a * x`.
#[kernel]
fn axpy<T: Num>(a: T, x: &[T], y: &mut [T]) {
    let i = global_id().x;
    if i < y.len() {
        y[i] += a * x[i];
    }
}

fn arrays_are_slices(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x = arrays.arange(0i32, 6, 1)?.reshape((2, 3))?;
    let mut y = arrays.full((2, 3), 100)?;
    axpy.launch(jit, (1, 32), 2, &x, &mut y)?;
    jit.launch(&axpy, 1, 32, args!(10, &x, &mut y))?;
    assert_eq!(y.to_vec()?, [100, 112, 124, 136, 148, 160]);
    // A row is a slice, too; and a buffer beside an array.
    let mut buffer = jit.upload(&[1, 2, 3])?;
    axpy.launch(jit, (1, 32), 1, &x.row(1)?, &mut buffer)?;
    assert_eq!(buffer.to_vec()?, [4, 6, 8]);
    // What is borrowed, or behind a pointer, is passed on.
    let (shared, borrowed) = (std::sync::Arc::new(x), &mut y);
    for _ in 0..2 {
        axpy.launch(jit, (1, 32), -1, &shared, borrowed)?;
    }
    assert_eq!(y.get([1, 2])?, 160 - 10);
    let none = arrays.zeros::<i32>(0)?;
    axpy.launch(jit, (1, 32), 1, &none, &mut none.clone())?;
    Ok(())
}

fn arrays_that_are_no_slices_are_errors(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x = arrays.arange(0i32, 6, 1)?.reshape((2, 3))?;
    let mut y = arrays.zeros(6)?;
    let text = expect![[
        r#"the elements of this array of shape 3x2 do not lie one after the other (strides [1, 3]); `contiguous()` makes a copy that does"#
    ]];
    let refused = [
        axpy.launch(jit, (1, 32), 1, &x.t(), &mut y),
        jit.launch(&axpy, 1, 32, args!(1, &x.t(), &mut y)),
    ];
    for refused in refused {
        let error = refused.expect_err("it is no slice");
        assert!(matches!(
            error.library::<ArrayError>(),
            Some(ArrayError::NotContiguous { .. })
        ));
        text.assert_eq(&error.to_string());
    }
    assert_eq!(y.to_vec()?, [0; 6]);
    axpy.launch(jit, (1, 32), 1, &x.t().contiguous()?, &mut y)?;
    assert_eq!(y.to_vec()?, [0, 3, 1, 4, 2, 5]);
    Ok(())
}

fn what_is_written_is_not_shared(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x = arrays.arange(0i32, 4, 1)?;
    let mut y = x.clone();
    axpy.launch(jit, (1, 32), 1, &x, &mut y)?;
    // A view that is no slice becomes an array of its own.
    let mut back = x.flip(0)?;
    jit.launch(&axpy, 1, 32, args!(100, &x, &mut back))?;
    assert_eq!(
        (x.to_vec()?, y.to_vec()?, back.to_vec()?),
        (vec![0, 1, 2, 3], vec![0, 2, 4, 6], vec![3, 102, 201, 300])
    );
    Ok(())
}

/// Elements of a plane and of a space, read, assigned, added to and borrowed.
#[kernel]
fn planes(
    x: View2<'_, f32>,
    mut y: View2Mut<'_, f32>,
    z: View3<'_, i32>,
    mut sums: View3Mut<'_, i32>,
) {
    let (i, j) = (global_id().y, global_id().x);
    if i < y.dim(0) && j < y.dim(1) {
        y[(i, j)] = x[(j, i)] + x.at(j, i);
        y[(i, j)] *= 2.0;
        let old = &mut y[(i, j)];
        *old += 1.0;
        for k in 0..z.dim(2) {
            sums[(0, i, j)] += z[(i, j, k)];
            atomic_add(&mut sums[(1, 0, 0)], z[(i, j, k)]);
        }
    }
}

fn elements_by_several_indices(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x = arrays.arange(0.0f32, 6.0, 1.0)?.reshape((2, 3))?;
    let mut y = arrays.zeros::<f32>((3, 2))?;
    let z = arrays.arange(0i32, 24, 1)?.reshape((4, 2, 3))?;
    let mut sums = arrays.zeros::<i32>((2, 3, 2))?;
    let turned = z.permute([2, 1, 0])?;
    planes.launch(jit, (1, (8, 8)), &x, &mut y, &turned, &mut sums)?;
    assert_eq!(y.to_vec()?, [1.0, 13.0, 5.0, 17.0, 9.0, 21.0]);
    let want = turned.sum_axis_as::<i32>(2.into_axes())?.to_vec()?;
    assert_eq!(sums.index_axis(0, 0)?.to_vec()?, want);
    assert_eq!(sums.get([1, 0, 0])?, 23 * 12);
    Ok(())
}

/// A triangle of a matrix, row by row.
#[derive(KernelView)]
struct Triangle<'a, T> {
    values: &'a [T],
    rows: u32,
}

#[device_fn]
impl<T: Num> Index<(usize, usize)> for Triangle<'_, T> {
    type Output = T;
    fn index(&self, indices: (usize, usize)) -> &Self::Output {
        let (i, j) = indices;
        let is_there = j <= i && i < self.rows as usize;
        assert!(is_there, "above the diagonal");
        &self.values[i * (i + 1) / 2 + j]
    }
}

struct HostTriangle(Array<i64>, u32);

impl<'a> IntoView<'a, Triangle<'a, i64>> for &'a HostTriangle {
    fn into_view(self) -> kiln::Result<TriangleArgs<'a, i64>> {
        let values = self.0.as_part()?;
        Ok(TriangleArgs {
            values,
            rows: self.1,
        })
    }
}

#[kernel]
fn diagonal<T: Num>(x: Triangle<'_, T>, y: &mut [T], row: usize) {
    let i = global_id().x;
    if i < y.len() {
        y[i] = x[(i + row, i)] + x[(i, 0)];
    }
}

fn elements_of_views_of_the_user(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x = HostTriangle(arrays.arange(0i64, 10, 1)?, 4);
    let mut y = arrays.zeros::<i64>(3)?;
    diagonal.launch(jit, (1, 32), &x, &mut y, 0)?;
    assert_eq!(y.to_vec()?, [0, 3, 8]);
    diagonal.launch(jit, (1, 32), &x, &mut y, 2)?;
    let fault = jit.synchronize().expect_err("there are four rows");
    assert!(fault.to_string().contains("above the diagonal"), "{fault}");
    Ok(())
}

#[kernel]
fn beyond(x: View2<'_, f32>, mut y: View2Mut<'_, f32>, i: usize, j: usize) {
    y[(0, 0)] = x[(i, j)];
}

fn an_index_of_each_dimension_is_checked(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x = arrays.ones::<f32>((2, 3))?;
    let mut y = arrays.zeros::<f32>((1, 1))?;
    beyond.launch(jit, (1, 1), &x, &mut y, 1, 2)?;
    assert_eq!(y.item()?, 1.0);
    // The element would be there if the buffer were all that counts.
    for (i, j) in [(0, 3), (2, 0)] {
        let jit = super::exact(jit);
        let arrays = Arrays::new(&jit);
        let (x, mut y) = (
            arrays.ones::<f32>((4, 3))?.slice(s![..2])?,
            arrays.zeros::<f32>((1, 1))?,
        );
        beyond.launch(&jit, (1, 1), &x, &mut y, i, j)?;
        let fault = jit.synchronize().expect_err("there is no such element");
        assert!(
            fault
                .to_string()
                .contains("an index is outside of the view"),
            "{fault}"
        );
    }
    Ok(())
}

#[kernel]
fn first(x: View1<'_, f32>, y: &mut [f32]) {
    y[0] = x.at(0);
}

fn other_views_are_errors(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x = arrays.ones::<f32>((2, 3))?;
    let mut y = arrays.zeros::<f32>(1)?;
    let error = first
        .launch(jit, (1, 1), &x, &mut y)
        .expect_err("it is a matrix");
    expect![[
        r#"an array of shape 2x3 is no view of 1 dimensions of a kernel; it has 2, and a buffer may have 2^32 - 1 elements"#
    ]]
    .assert_eq(&error.to_string());
    first.launch(jit, (1, 1), &x.column(1)?, &mut y)?;
    assert_eq!(y.item()?, 1.0);
    Ok(())
}
