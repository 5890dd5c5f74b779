//! Arrays put together and taken apart: pieces beside each other, moved, surrounded; products of matrices.

use crate::layout::axis_of;
use crate::slice::SliceItem;
use crate::statistics::sum_of;
use crate::{Array, ArrayError, Arrays, Element, Expr, NumberElement, Result, Shape};

/// What shows a range of a dimension, and all of those before it.
fn along(axis: usize, start: usize, end: usize) -> Vec<SliceItem> {
    let mut items = vec![SliceItem::from(..); axis];
    items.push(SliceItem::from(start..end));
    items
}

impl Arrays {
    /// Arrays behind each other along a dimension, whose other dimensions are the same (NumPy's `concatenate`).
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.array(vec![1, 2, 3, 4], (2, 2))?;
    /// assert_eq!(arrays.concat(1, &[&x, &x.t()])?.to_vec()?, [1, 2, 1, 3, 3, 4, 2, 4]);
    /// assert_eq!(arrays.stack(0, &[&x.row(1)?, &x.row(0)?])?.to_vec()?, [3, 4, 1, 2]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// No arrays, or arrays that do not go together; those of [`Expr::eval`].
    #[track_caller]
    pub fn concat<T: Element>(&self, axis: isize, parts: &[&Array<T>]) -> Result<Array<T>> {
        let Some(first) = parts.first() else {
            let (operation, shape) = ("the concatenation", Shape::new(0));
            return Err(ArrayError::Empty { operation, shape });
        };
        let axis = axis_of(axis, first.shape())?;
        let all = parts.iter().filter_map(|part| part.dims().get(axis)).sum();
        let dims = first.dims().iter().enumerate();
        let dims = dims.map(|(at, dim)| if at == axis { all } else { *dim });
        let mut whole = self.unspecified(Shape::of(dims))?;
        let mut start = 0;
        for part in parts {
            let end = start + part.dims().get(axis).copied().unwrap_or(0);
            let mut place = whole.slice_mut(along(axis, start, end))?;
            if place.shape() != part.shape() {
                return Err(crate::ShapeMismatch {
                    left: first.shape().clone(),
                    right: part.shape().clone(),
                    at: Some(std::panic::Location::caller()),
                }
                .into());
            }
            place.assign(*part)?;
            start = end;
        }
        Ok(whole)
    }

    /// Arrays of one shape behind each other along a new dimension, which then has this number.
    ///
    /// # Errors
    /// As [`Arrays::concat`].
    #[track_caller]
    pub fn stack<T: Element>(&self, axis: isize, parts: &[&Array<T>]) -> Result<Array<T>> {
        let parts = parts.iter().map(|part| part.insert_axis(axis));
        let parts = parts.collect::<Result<Vec<_>>>()?;
        self.concat(axis, &parts.iter().collect::<Vec<_>>())
    }
}

impl<T: Element> Array<T> {
    /// The elements moved along a dimension; what leaves it at one end comes back at the other (NumPy's `roll`).
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.vector(vec![1, 2, 3, 4])?;
    /// assert_eq!((x.roll(0, 1)?.to_vec()?, x.roll(0, -1)?.to_vec()?), (vec![4, 1, 2, 3], vec![2, 3, 4, 1]));
    /// assert_eq!(x.pad(&[(2, 1)], 0)?.to_vec()?, [0, 0, 1, 2, 3, 4, 0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A dimension that is not there; those of [`Expr::eval`].
    pub fn roll(&self, axis: isize, by: isize) -> Result<Array<T>> {
        let at = axis_of(axis, self.shape())?;
        let dim = self.dims()[at];
        if dim == 0 {
            return Ok(self.clone());
        }
        let by = by.rem_euclid(dim as isize) as usize;
        let end = self.slice(along(at, dim - by, dim))?;
        let start = self.slice(along(at, 0, dim - by))?;
        self.arrays.concat(axis, &[&end, &start])
    }

    /// The elements with so many others before and behind them along each of the first dimensions (NumPy's `pad`).
    /// [`Array::roll`] has an example.
    ///
    /// # Errors
    /// More pairs than dimensions; those of [`Expr::eval`].
    pub fn pad(&self, around: &[(usize, usize)], value: T) -> Result<Array<T>> {
        if around.len() > self.rank() {
            let (items, shape) = (around.len(), self.shape().clone());
            return Err(ArrayError::Items { items, shape });
        }
        let of = |axis: usize| around.get(axis).copied().unwrap_or((0, 0));
        let dims = self.dims().iter().enumerate();
        let dims = dims.map(|(axis, dim)| of(axis).0 + dim + of(axis).1);
        let mut padded = self.arrays.full(Shape::of(dims), value)?;
        let inside = self.dims().iter().enumerate();
        let inside = inside.map(|(axis, dim)| SliceItem::from(of(axis).0..of(axis).0 + dim));
        let inside: Vec<SliceItem> = inside.collect();
        padded.slice_mut(inside)?.assign(self)?;
        Ok(padded)
    }
}

impl<T: NumberElement> Array<T> {
    /// Differences of neighbours along a dimension, one fewer than there are elements: an expression.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.vector(vec![1.0f32, 4.0, 9.0])?;
    /// assert_eq!(x.diff(0)?.eval()?.to_vec()?, [3.0, 5.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A dimension that is not there, or one without elements.
    pub fn diff(&self, axis: isize) -> Result<Expr<T>> {
        let at = axis_of(axis, self.shape())?;
        let dim = self.dims()[at];
        let after = self.slice(along(at, 1, dim.max(1)))?;
        Ok(after - self.slice(along(at, 0, dim.saturating_sub(1)))?)
    }

    /// The product of matrices (NumPy's `@`): of the last two dimensions, those before go together as shapes do. A vector
    /// on the right is a column, and the result has no dimension for it; one on the left is a row. Matrices of 16 rows and
    /// columns and more, as many on either side, are multiplied in tiles; others by a fold of the fused products.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.array(vec![1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], (2, 3))?;
    /// assert_eq!(x.matmul(&x.t())?.to_vec()?, [14.0, 32.0, 32.0, 77.0]);
    /// let y = arrays.vector(vec![1.0f32, 0.0, -1.0])?;
    /// assert_eq!((x.matmul(&y)?.to_vec()?, x.matmul(&y)?.dims()), (vec![-2.0, -2.0], &[2][..]));
    /// assert!(x.matmul(&x).is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Shapes that do not go together; those of [`Expr::reduce_axis`].
    #[track_caller]
    pub fn matmul(&self, right: &Array<T>) -> Result<Array<T>> {
        let place = std::panic::Location::caller();
        let mismatch = || crate::ShapeMismatch {
            left: self.shape().clone(),
            right: right.shape().clone(),
            at: Some(place),
        };
        self.narrow("a product")?;
        right.narrow("a product")?;
        let (a, b) = match (self.rank(), right.rank()) {
            (0, _) | (_, 0) => return Err(mismatch().into()),
            (1, _) => (self.insert_axis(0)?, right.clone()),
            _ => (self.clone(), right.clone()),
        };
        let b = if b.rank() == 1 { b.insert_axis(1)? } else { b };
        if a.dims()[a.rank() - 1] != b.dims()[b.rank() - 2] {
            return Err(mismatch().into());
        }
        if right.rank() > 1
            && self.rank() > 1
            && let Some(product) = crate::product::tiled(&a, &b)?
        {
            return Ok(product);
        }
        let (a, b) = (a.insert_axis(-1)?, b.insert_axis(-3)?);
        let mut result = (a * b).reduce_axis(-2, sum_of(), T::ZERO)?;
        if right.rank() == 1 {
            result = result.index_axis(-1, 0)?;
        }
        match self.rank() {
            1 if right.rank() == 1 => result.index_axis(-1, 0),
            1 => result.index_axis(-2, 0),
            _ => Ok(result),
        }
    }
}
