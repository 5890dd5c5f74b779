//! Elements in order, along a dimension.
//!
//! Keys of a whole array are sorted at once (`sort/radix.rs`). Of several rows the elements are put in the order of their
//! keys first, and then, without a change among those of one row, in that of their rows.

mod keys;
mod radix;

pub use keys::SortElement;

use crate::layout::axis_of;
use crate::{Array, Element, Result};

impl<T: Element + SortElement> Array<T> {
    /// The elements in order along a dimension, the smallest first, NaNs last (NumPy's `sort`).
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.array(vec![3.0f32, -1.0, 2.0, 0.5, 8.0, -7.0], (2, 3))?;
    /// assert_eq!(x.sort(-1)?.to_vec()?, [-1.0, 2.0, 3.0, -7.0, 0.5, 8.0]);
    /// assert_eq!(x.sort(0)?.to_vec()?, [0.5, -1.0, -7.0, 3.0, 8.0, 2.0]);
    /// assert_eq!(x.argsort(1)?.to_vec()?, [1, 2, 0, 2, 0, 1]);
    /// assert_eq!(x.sort(-1)?.flip(-1)?.row(0)?.to_vec()?, [3.0, 2.0, -1.0]); // the largest first
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A dimension that is not there; those of [`Expr::eval`](crate::Expr::eval).
    pub fn sort(&self, axis: isize) -> Result<Array<T>> {
        let rows = Rows::of(self, axis)?;
        if rows.count() != 1 {
            return rows.whole(rows.x.flatten()?.take(&rows.places()?, 0)?);
        }
        let sorted = radix::sort(self.arrays.jit(), rows.x.as_part()?)?;
        self.arrays.count_launch();
        rows.whole(self.arrays.adopt(sorted, rows.x.len())?)
    }

    /// Where along a dimension the elements are that come first, second and so on in its order; of alike ones the first
    /// comes first (NumPy's `argsort`, stable). [`Array::sort`] has an example.
    ///
    /// # Errors
    /// As [`Array::sort`].
    pub fn argsort(&self, axis: isize) -> Result<Array<u32>> {
        let rows = Rows::of(self, axis)?;
        rows.whole((rows.places()? % rows.row as u32).eval()?)
    }

    /// The different elements, in order (NumPy's `unique`).
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.vector(vec![3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5])?;
    /// assert_eq!(x.unique()?.to_vec()?, [1, 2, 3, 4, 5, 6, 9]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Array::sort`].
    pub fn unique(&self) -> Result<Array<T>> {
        self.narrow("`unique`")?;
        let sorted = self.flatten()?.sort(0)?;
        if sorted.len() < 2 {
            return Ok(sorted);
        }
        let mut is_new = self.arrays.full(sorted.len(), true)?;
        let (all, last) = (sorted.len() as isize, sorted.len() as isize - 1);
        let later = sorted.slice(crate::s![1..all])?;
        let differs = later.ne(&sorted.slice(crate::s![0..last])?);
        is_new.slice_mut(crate::s![1..all])?.assign(differs)?;
        sorted.compress(&is_new)
    }
}

/// An array as rows, which are what is put in order.
struct Rows<T: Element> {
    /// The rows, one behind the other.
    x: Array<T>,
    /// The elements of a row.
    row: usize,
    /// The shape with the dimension last, and which dimension it is.
    dims: Vec<usize>,
    axis: isize,
}

impl<T: Element + SortElement> Rows<T> {
    fn of(x: &Array<T>, axis: isize) -> Result<Rows<T>> {
        let axis = axis_of(axis, x.shape())? as isize;
        x.counted("sorting", radix::MOST)?;
        let last = x.swap_axes(axis, -1)?;
        let dims = last.dims().to_vec();
        Ok(Rows {
            row: dims.last().copied().unwrap_or(1).max(1),
            x: last.contiguous()?,
            dims,
            axis,
        })
    }

    fn count(&self) -> usize {
        self.x.len() / self.row
    }

    /// Where in the whole the elements are, row by row in the order of each.
    fn places(&self) -> Result<Array<u32>> {
        let (arrays, len) = (&self.x.arrays, self.x.len());
        let places = radix::sort_pairs(arrays.jit(), self.x.as_part()?, None, T::BITS)?;
        let places = arrays.adopt(places, len)?;
        if self.count() <= 1 {
            return Ok(places);
        }
        let rows = (&places / self.row as u32).eval()?.into_buffer()?;
        let bits = usize::BITS - (self.count() - 1).leading_zeros();
        let places = Some(places.into_buffer()?);
        let places = radix::sort_pairs(arrays.jit(), &rows, places, bits)?;
        arrays.adopt(places, len)
    }

    /// What belongs to the elements, row by row, in the shape of the array.
    fn whole<U: Element>(&self, of_rows: Array<U>) -> Result<Array<U>> {
        let rows = of_rows.reshape(self.dims.as_slice())?;
        rows.swap_axes(self.axis, -1)
    }
}
