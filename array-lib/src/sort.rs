//! Elements in order, along a dimension.
//!
//! Keys of a whole array are sorted at once (`sort/radix.rs`). Of several rows the elements are put in the order of their
//! keys first, and then, without a change among those of one row, in that of their rows.

mod keys;
mod radix;

use kiln_device_stdlib::plain::index::global_id;
use kiln_jit_core::args::IntoArg;
use kiln_jit_core::error::Error;
use kiln_jit_core::launch::grid_for;
use kiln_jit_core::runtime::Buffer;
use kiln_kernel_macro::kernel;

pub use keys::SortElement;

use crate::layout::axis_of;
use crate::{Array, Element, Result};

/// Threads of a block.
const BLOCK: u32 = 256;

/// The place of each element.
#[kernel]
fn count_up(places: &mut [u32]) {
    let i = global_id().x;
    if i < places.len() {
        places[i] = i as u32;
    }
}

/// The rows of places.
#[kernel]
fn rows_of(places: &[u32], row: usize, rows: &mut [u32]) {
    let i = global_id().x;
    if i < rows.len() {
        rows[i] = places[i] / row as u32;
    }
}

/// Places within rows, of places in the whole.
#[kernel]
fn within_rows(places: &[u32], row: usize, out: &mut [u32]) {
    let i = global_id().x;
    if i < out.len() {
        out[i] = places[i] % row as u32;
    }
}

/// The elements at places.
#[kernel]
fn pick<T: KernelType>(x: &[T], places: &[u32], out: &mut [T]) {
    let i = global_id().x;
    if i < out.len() {
        out[i] = x[places[i] as usize];
    }
}

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
            let places = rows.places()?;
            return rows.whole(rows.picked(&places)?);
        }
        let (arrays, keys) = (&self.arrays, rows.keys()?);
        let keys = radix::sort_keys(arrays.jit(), keys, T::BITS)?;
        let mut out = arrays.jit().zeros::<T>(rows.x.len())?;
        let args = [(&keys).into_arg(), (&mut out).into_arg()];
        let grid = grid_for(rows.x.len(), BLOCK);
        arrays.jit().launch(T::of_keys()?, grid, BLOCK, &args)?;
        drop(args);
        rows.whole(out)
    }

    /// Where along a dimension the elements are that come first, second and so on in its order; of alike ones the first
    /// comes first (NumPy's `argsort`, stable). [`Array::sort`] has an example.
    ///
    /// # Errors
    /// As [`Array::sort`].
    pub fn argsort(&self, axis: isize) -> Result<Array<u32>> {
        let rows = Rows::of(self, axis)?;
        let (jit, places) = (self.arrays.jit(), rows.places()?);
        let mut out = jit.zeros::<u32>(places.len())?;
        if !places.is_empty() {
            let row = (rows.row as u32).into_arg();
            let args = [(&places).into_arg(), row, (&mut out).into_arg()];
            let grid = grid_for(places.len(), BLOCK);
            jit.launch(&within_rows, grid, BLOCK, &args)?;
        }
        rows.whole(out)
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

    fn keys(&self) -> Result<Buffer<T::Key>> {
        let jit = self.x.arrays.jit();
        let mut keys = jit.zeros::<T::Key>(self.x.len())?;
        if !keys.is_empty() {
            let grid = grid_for(keys.len(), BLOCK);
            let args = [self.x.as_part()?.into_arg(), (&mut keys).into_arg()];
            jit.launch(T::to_keys()?, grid, BLOCK, &args)?;
        }
        Ok(keys)
    }

    /// Where in the whole the elements are, row by row in the order of each.
    fn places(&self) -> Result<Buffer<u32>> {
        let (jit, len) = (self.x.arrays.jit(), self.x.len());
        let mut places = jit.zeros::<u32>(len)?;
        if len == 0 {
            return Ok(places);
        }
        let grid = grid_for(len, BLOCK);
        jit.launch(&count_up, grid, BLOCK, &[(&mut places).into_arg()])?;
        let places = radix::sort_pairs(jit, self.keys()?, places, T::BITS)?;
        if self.count() == 1 {
            return Ok(places);
        }
        let mut rows = jit.zeros::<u32>(len)?;
        let row = (self.row as u32).into_arg();
        let args = [(&places).into_arg(), row, (&mut rows).into_arg()];
        jit.launch(&rows_of, grid, BLOCK, &args)?;
        drop(args);
        let bits = usize::BITS - (self.count() - 1).leading_zeros();
        Ok(radix::sort_pairs(jit, rows, places, bits)?)
    }

    fn picked(&self, places: &Buffer<u32>) -> Result<Buffer<T>, Error> {
        let jit = self.x.arrays.jit();
        let mut out = jit.zeros::<T>(places.len())?;
        if !places.is_empty() {
            let args = [
                self.x.as_part().map_err(Error::from)?.into_arg(),
                places.into_arg(),
                (&mut out).into_arg(),
            ];
            jit.launch(&pick, grid_for(places.len(), BLOCK), BLOCK, &args)?;
        }
        Ok(out)
    }

    /// What belongs to the elements, row by row, in the shape of the array.
    fn whole<U: Element>(&self, of_rows: Buffer<U>) -> Result<Array<U>> {
        let arrays = &self.x.arrays;
        let rows = arrays.adopt(of_rows, self.dims.as_slice())?;
        rows.swap_axes(self.axis, -1)
    }
}
