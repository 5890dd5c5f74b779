//! Running sums, products and folds along a dimension, and folds in order.
//!
//! One row is scanned in one pass (`scan/whole.rs`), and so are several (`scan/rows.rs`), by tiles that look back at those
//! before them (`scan/look_back.rs`). By an operator of the
//! user's each block folds a tile, what these have left is scanned in the same way, and each block then scans its tile
//! from there (`scan/any.rs`). Columns have a thread each, short rows where that is better, and chunks of a whole
//! vector on CPUs (`scan/lines.rs`). What tiles and parts of columns come to in the order of their elements is also how
//! all of them are folded in order (`scan/ordered.rs`).

mod any;
mod lines;
mod look_back;
mod ordered;
mod rows;
mod select;
mod whole;

use kiln_jit_core::build::Kernel;

use crate::function::Applied;
use crate::layout::axis_of;
use crate::{Array, ArrayError, Element, ElementFn, NumberElement, Result, Shape};

use lines::{Lines, Op};
use rows::{scan_rows_products, scan_rows_sums};
pub(crate) use select::select_of;
pub(crate) use whole::{ScanAll, scan_all};

/// More elements than any tile has: the last one may count that far beyond the last element.
const BEYOND: usize = 16_384;

/// The most elements that are counted, with those that the last tile has no more of.
pub(crate) const MOST: usize = u32::MAX as usize - BEYOND;

impl<T: Element> Array<T> {
    /// As [`ArrayError::TooMany`] if there are more elements than an operation has indices for.
    pub(crate) fn counted(&self, operation: &'static str, most: usize) -> Result<()> {
        counted(self.shape(), operation, most)
    }
}

/// As [`ArrayError::TooMany`] if an array of this shape has more elements than an operation has indices for.
pub(crate) fn counted(shape: &Shape, operation: &'static str, most: usize) -> Result<()> {
    match shape.len() > most {
        true => Err(ArrayError::TooMany {
            operation,
            shape: shape.clone(),
            most,
        }),
        false => Ok(()),
    }
}

/// What a kernel does with the elements that a block or a thread goes along.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Pass {
    /// Leaves what they come to.
    Fold,
    /// Writes what those up to each come to, with it.
    Inclusive,
    /// Writes what those before each come to.
    Exclusive,
}

impl Pass {
    fn of(is_exclusive: bool) -> Pass {
        match is_exclusive {
            true => Pass::Exclusive,
            false => Pass::Inclusive,
        }
    }
}

/// What is scanned with: the kernels, and the neutral element.
struct Scan<T> {
    /// Of one row, and of several.
    all: ScanAll,
    rows: &'static Kernel,
    neutral: T,
    op: Op<'static>,
}

impl<T: NumberElement> Scan<T> {
    /// Scans the rows of a matrix, whose elements lie one after the other.
    fn rows(&self, x: &Array<T>) -> Result<Array<T>> {
        let (rows, row) = (x.dims()[0], x.dims()[1]);
        if rows != 1 {
            return rows::scan(x, self.rows, self.neutral);
        }
        let part = x.as_part()?;
        let out = scan_all(x.arrays.jit(), &self.all, part, row, self.neutral, false)?;
        x.arrays.count_launch();
        x.arrays.adopt(out, (1, row))
    }

    fn along(&self, x: &Array<T>, axis: isize) -> Result<Array<T>> {
        along(x, (axis, self.op), None, |x| self.rows(x))
    }
}

/// Has the elements along a dimension be scanned where they are, or as the rows of a matrix, whose elements lie one after
/// the other; with a neutral element each result is of the elements before.
fn along<T: Element>(
    x: &Array<T>,
    (axis, op): (isize, Op<'_>),
    identity: Option<T>,
    scan_rows: impl FnOnce(&Array<T>) -> Result<Array<T>>,
) -> Result<Array<T>> {
    let axis = axis_of(axis, x.shape())?;
    x.counted("a running sum, product or fold", MOST)?;
    let lines = Lines::of(x.dims(), axis);
    if !x.is_empty() && lines.have_threads(&x.arrays, op) {
        return lines::scan(&x.contiguous()?, lines, op, identity);
    }
    let axis = axis as isize;
    let last = x.swap_axes(axis, -1)?;
    let dims = last.dims().to_vec();
    let row = dims.last().copied().unwrap_or(1);
    let rows = last.len().checked_div(row).unwrap_or(0);
    let scanned = scan_rows(&last.contiguous()?.reshape((rows, row))?)?;
    scanned.reshape(dims)?.swap_axes(axis, -1)
}

/// The running folds of a vector.
pub(crate) fn running<T: Element>(x: &Array<T>, op: &Applied) -> Result<Array<T>> {
    along(x, (0, Op::By(op)), None, |x| any::rows(x, op, None))
}

impl<T: Element> Array<T> {
    /// What the elements along a dimension up to each of them come to, with it, by an associative operation, which need
    /// not be commutative (NumPy's `ufunc.accumulate`, CUDA.jl's `accumulate`). Elements may be structs. What is combined
    /// with what depends on the shape and the device alone, so that results have the same bits each time.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.array(vec![3, 1, 4, 1, 5, 9], (2, 3))?;
    /// let largest = x.accumulate(1, device!(|a, b| a.max(b)))?;
    /// assert_eq!(largest.to_vec()?, [3, 3, 4, 1, 5, 9]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A dimension that is not there; those of [`Expr::eval`](crate::Expr::eval).
    pub fn accumulate(&self, axis: isize, op: ElementFn<(T, T), T>) -> Result<Array<T>> {
        let by = Op::By(&op.applied);
        along(self, (axis, by), None, |x| any::rows(x, &op.applied, None))
    }

    /// What the elements before each of them along a dimension come to by an associative operation, which need not be
    /// commutative: the exclusive scan (C++'s `exclusive_scan`). The first has `identity`, the operation's neutral
    /// element; the others have what [`Array::accumulate`] gives for the element before them.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let counts = arrays.vector(vec![3u32, 0, 2, 5])?;
    /// let starts = counts.accumulate_exclusive(0, device!(|a, b| a + b), 0)?;
    /// assert_eq!(starts.to_vec()?, [0, 3, 3, 5]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Array::accumulate`].
    pub fn accumulate_exclusive(
        &self,
        axis: isize,
        op: ElementFn<(T, T), T>,
        identity: T,
    ) -> Result<Array<T>> {
        let (by, first) = (Op::By(&op.applied), Some(identity));
        along(self, (axis, by), first, |x| {
            any::rows(x, &op.applied, first)
        })
    }
}

impl<T: NumberElement> Array<T> {
    /// The sums of the elements along a dimension up to each of them, with it (NumPy's `cumsum`). Those of floats may be
    /// rounded otherwise from run to run where blocks go through thousands of elements, as each block takes what those
    /// before it have left so far; [`Array::accumulate`] by `a + b` gives the same bits each time.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.array(vec![1, 2, 3, 4, 5, 6], (2, 3))?;
    /// assert_eq!(x.cumsum(1)?.to_vec()?, [1, 3, 6, 4, 9, 15]);
    /// assert_eq!(x.cumsum(0)?.to_vec()?, [1, 2, 3, 5, 7, 9]);
    /// assert_eq!(x.cumprod(-1)?.to_vec()?, [1, 2, 6, 4, 20, 120]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A dimension that is not there; those of [`Expr::eval`](crate::Expr::eval).
    pub fn cumsum(&self, axis: isize) -> Result<Array<T>> {
        let scan = Scan {
            all: ScanAll::sums::<T>(self.arrays.jit())?,
            rows: scan_rows_sums.get()?,
            neutral: T::ZERO,
            op: Op::Sum,
        };
        scan.along(self, axis)
    }

    /// The products of the elements along a dimension up to each of them, with it (NumPy's `cumprod`).
    ///
    /// # Errors
    /// As [`Array::cumsum`].
    pub fn cumprod(&self, axis: isize) -> Result<Array<T>> {
        let scan = Scan {
            all: ScanAll::products::<T>(self.arrays.jit())?,
            rows: scan_rows_products.get()?,
            neutral: T::ONE,
            op: Op::Product,
        };
        scan.along(self, axis)
    }
}
