//! Elements in order, along a dimension.
//!
//! Keys of a whole array are sorted at once (`sort/radix.rs`). Of several rows the elements are put in the order of
//! their keys first, and then, without a change among those of one row, in that of their rows. A comparison of the
//! user's sorts by merging (`sort/merge.rs`).

mod keys;
mod merge;
mod radix;

pub use keys::SortElement;

use kiln_jit_core::build::Val;

use crate::layout::axis_of;
use crate::{Array, ArrayError, Element, ElementFn, Expr, FloatElement, Result, broadcast};

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
        let rows = Rows::of(self, axis, ("sorting", radix::MOST))?;
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
        let rows = Rows::of(self, axis, ("sorting", radix::MOST))?;
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

impl<T: FloatElement + SortElement> Array<T> {
    /// The value below which a share of the elements along a dimension is, from 0 to 1, between the two nearest of them
    /// in proportion (NumPy's `quantile`). NaN where there is a NaN.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.array(vec![4.0f32, 1.0, 2.0, 8.0, 9.0, 7.0], (2, 3))?;
    /// assert_eq!(x.median(1)?.to_vec()?, [2.0, 8.0]);
    /// assert_eq!(x.quantile(0.75, 0)?.to_vec()?, [7.0, 7.0, 5.75]);
    /// assert!(x.quantile(75.0, 0).is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A share that is none; a dimension without elements; those of [`Array::sort`].
    pub fn quantile(&self, share: f64, axis: isize) -> Result<Array<T>> {
        if !(0.0..=1.0).contains(&share) {
            return Err(ArrayError::Share { share });
        }
        let at = axis_of(axis, self.shape())?;
        let Some(last) = self.dims()[at].checked_sub(1) else {
            return Err(ArrayError::Empty {
                operation: "quantile",
                shape: self.shape().clone(),
            });
        };
        let sorted = self.sort(axis)?;
        let place = share * last as f64;
        let element = |place: usize| sorted.index_axis(axis, place as isize);
        let (low, high) = (
            element(place.floor() as usize)?,
            element(place.ceil() as usize)?,
        );
        // NaNs are sorted to the end.
        let (greatest, between) = (element(last)?, place.fract());
        broadcast((&low, &high, &greatest, between), between_of()).eval()
    }

    /// The middle of the elements along a dimension in order, of an even number the mean of both (NumPy's `median`).
    /// [`Array::quantile`] has an example.
    ///
    /// # Errors
    /// As [`Array::quantile`].
    pub fn median(&self, axis: isize) -> Result<Array<T>> {
        self.quantile(0.5, axis)
    }
}

/// What is so far from the first number to the second; the third if that is NaN.
fn between_of<T: Element>() -> ElementFn<(T, T, T, f64), T> {
    ElementFn::operation("between", |[low, high, greatest, part]: [Val<'_>; 4]| {
        let between = low + (high - low) * part.cast(low.ty());
        // Also where both are infinite.
        let between = low.eq(high).select(low, between);
        greatest.ne(greatest).select(greatest, between)
    })
}

impl<T: Element> Array<T> {
    /// The elements in the order of a comparison along a dimension: `less` tells whether its first is before its
    /// second. Alike ones stay in theirs (Rust's `sort_by`, C++'s `stable_sort`). Elements may be structs; of a
    /// comparison that contradicts itself the order is not specified.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.vector(vec![3, -1, 2, -5, 4])?;
    /// let by_size = x.sort_by(0, device!(|a, b| a.abs() < b.abs()))?;
    /// assert_eq!(by_size.to_vec()?, [-1, 2, 3, 4, -5]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A dimension that is not there; more than 2^31 elements; those of [`Expr::eval`](crate::Expr::eval).
    pub fn sort_by(&self, axis: isize, less: ElementFn<(T, T), bool>) -> Result<Array<T>> {
        let most = ("sorting by a comparison", merge::MOST_SORTED);
        let rows = Rows::of(self, axis, most)?;
        let sorted = merge::sort(&rows.x, rows.row, &less.applied)?;
        rows.whole(self.arrays.adopt(sorted, rows.x.len())?)
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

impl<T: Element> Rows<T> {
    fn of(x: &Array<T>, axis: isize, (operation, most): (&'static str, usize)) -> Result<Rows<T>> {
        let axis = axis_of(axis, x.shape())? as isize;
        x.counted(operation, most)?;
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

    /// What belongs to the elements, row by row, in the shape of the array.
    fn whole<U: Element>(&self, of_rows: Array<U>) -> Result<Array<U>> {
        let rows = of_rows.reshape(self.dims.as_slice())?;
        rows.swap_axes(self.axis, -1)
    }
}

impl<T: Element + SortElement> Rows<T> {
    /// Where in the whole the elements are, row by row in the order of each.
    fn places(&self) -> Result<Array<u32>> {
        in_groups(&self.x, self.count().saturating_sub(1), |places| {
            Ok(places / self.row as u32)
        })
    }
}

/// Where the elements are, which lie in groups one behind the other, group by group in the order of each; `group` tells
/// the numbers of the groups of elements that lie in these places, of which `last` is the greatest.
pub(crate) fn in_groups<T: Element + SortElement>(
    x: &Array<T>,
    last: usize,
    group: impl FnOnce(&Array<u32>) -> Result<Expr<u32>>,
) -> Result<Array<u32>> {
    let (arrays, len) = (&x.arrays, x.len());
    x.counted("sorting", radix::MOST)?;
    let x = x.contiguous()?;
    let places = radix::sort_pairs(arrays.jit(), x.as_part()?, None, T::BITS)?;
    let places = arrays.adopt(places, len)?;
    if last == 0 {
        return Ok(places);
    }
    let groups = group(&places)?.eval()?.into_buffer()?;
    let bits = usize::BITS - last.leading_zeros();
    let places = Some(places.into_buffer()?);
    let places = radix::sort_pairs(arrays.jit(), &groups, places, bits)?;
    arrays.adopt(places, len)
}
