//! Which dimensions a reduction folds.

use std::ops::RangeFull;

use smallvec::SmallVec;

use crate::layout::axis_of;
use crate::{ArrayError, Result, Shape};

/// The dimensions that a reduction folds; negative numbers count from the end. [`IntoAxes`] makes them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Axes {
    /// `None` for all.
    axes: Option<SmallVec<[isize; 4]>>,
    keep: bool,
}

/// What says which dimensions a reduction folds: a number, an array of numbers, `..` for all of them, and any of these in
/// [`keep_dims`]. Negative numbers count from the end. A dimension that is named twice is refused, as in NumPy.
///
/// ```
/// use kiln::array::keep_dims;
/// use kiln::prelude::*;
///
/// # fn main() -> kiln::Result<()> {
/// let arrays = Arrays::new(&Jit::new()?);
/// let x = arrays.ones::<f32>((2, 3, 4))?;
/// assert_eq!(x.sum_axis(1)?.dims(), [2, 4]);
/// assert_eq!(x.sum_axis(-1)?.dims(), [2, 3]);
/// assert_eq!(x.sum_axis([0, 2])?.to_vec()?, [8.0; 3]);
/// assert_eq!(x.sum_axis(keep_dims([0, 2]))?.dims(), [1, 3, 1]);
/// assert_eq!(x.sum_axis(..)?.item()?, 24.0); // one element without dimensions, on the device
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` names no dimensions",
    note = "a number does, `[0, 2]`, `..`, and `keep_dims(1)`"
)]
pub trait IntoAxes {
    /// The dimensions.
    fn into_axes(self) -> Axes;
}

impl IntoAxes for Axes {
    fn into_axes(self) -> Axes {
        self
    }
}

impl IntoAxes for RangeFull {
    fn into_axes(self) -> Axes {
        let (axes, keep) = (None, false);
        Axes { axes, keep }
    }
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl IntoAxes for $number {
            fn into_axes(self) -> Axes {
                [self].into_axes()
            }
        }
        impl<const N: usize> IntoAxes for [$number; N] {
            fn into_axes(self) -> Axes {
                self.as_slice().into_axes()
            }
        }
        impl IntoAxes for &[$number] {
            fn into_axes(self) -> Axes {
                let axes = self.iter().map(|axis| *axis as isize);
                Axes { axes: Some(axes.collect()), keep: false }
            }
        }
    )*};
}
numbers! { i32 isize usize }

/// Dimensions to be folded, each of which is left in the result, with one element: it goes with the array that was folded.
///
/// ```
/// use kiln::array::keep_dims;
/// use kiln::prelude::*;
///
/// # fn main() -> kiln::Result<()> {
/// let arrays = Arrays::new(&Jit::new()?);
/// let x = arrays.array(vec![1.0f32, 3.0, 2.0, 6.0], (2, 2))?;
/// let share = (&x / x.sum_axis(keep_dims(1))?).eval()?;
/// assert_eq!(share.to_vec()?, [0.25, 0.75, 0.25, 0.75]);
/// # Ok(())
/// # }
/// ```
pub fn keep_dims(axes: impl IntoAxes) -> Axes {
    Axes {
        keep: true,
        ..axes.into_axes()
    }
}

impl Axes {
    /// For each dimension of a shape whether it is folded.
    pub(crate) fn mask(&self, shape: &Shape) -> Result<SmallVec<[bool; 4]>> {
        let Some(axes) = &self.axes else {
            return Ok(SmallVec::from_elem(true, shape.rank()));
        };
        let mut mask = SmallVec::from_elem(false, shape.rank());
        for axis in axes {
            let axis = axis_of(*axis, shape)?;
            if std::mem::replace(&mut mask[axis], true) {
                let shape = shape.clone();
                return Err(ArrayError::Repeated { axis, shape });
            }
        }
        Ok(mask)
    }

    /// The shape that is left.
    pub(crate) fn result(&self, shape: &Shape, mask: &[bool]) -> Shape {
        let dims = shape.dims().iter().zip(mask);
        Shape::of(dims.filter_map(|(dim, folded)| match (folded, self.keep) {
            (false, _) => Some(*dim),
            (true, true) => Some(1),
            (true, false) => None,
        }))
    }
}
