//! Running sums and products along a dimension.
//!
//! One row is scanned in one pass (`scan/look_back.rs`). Several are scanned in chunks: each block folds one of them,
//! what these have left is scanned in the same way, and each block then scans its chunk from there. An operator of the
//! user's is scanned in the same way (`scan/any.rs`). Columns and short rows have a thread each (`scan/lines.rs`).

mod any;
mod lines;
mod look_back;
mod select;

use kiln_device_stdlib::group::{block_inclusive_scan, block_reduce};
use kiln_device_stdlib::plain::index::{block_idx, thread_idx};
use kiln_device_stdlib::plain::number::Num;
use kiln_jit_core::args::IntoArg;
use kiln_jit_core::build::Kernel;
use kiln_kernel_macro::kernel;

use crate::layout::axis_of;
use crate::{Array, ArrayError, Element, ElementFn, NumberElement, Result, Shape};

use lines::{Lines, Op};
use look_back::scan_all_products;
pub(crate) use look_back::{scan_all, scan_all_sums};
pub(crate) use select::select_of;

/// Threads of a block.
const BLOCK: usize = 256;

/// Elements of a chunk.
const CHUNK: usize = 4096;

/// The kernels of a scan with an operator.
macro_rules! scans {
    ($fold:ident $scan:ident $operator:tt) => {
        /// Folds each chunk of each row.
        #[kernel]
        fn $fold<T: Num>(x: &[T], row: usize, chunks: usize, chunk: usize, neutral: T, out: &mut [T]) {
            let here = block_idx().x;
            let at = here / chunks * row;
            let start = here % chunks * chunk;
            let end = (start + chunk).min(row);
            let mut sum = neutral;
            let mut i = start + thread_idx().x;
            while i < end {
                sum = sum $operator x[at + i];
                i += BLOCK;
            }
            let sum = block_reduce(sum, |a, b| a $operator b);
            if thread_idx().x == 0 {
                out[here] = sum;
            }
        }

        /// Scans each chunk of each row, from what is before it.
        #[kernel]
        fn $scan<T: Num>(
            x: &[T],
            before: &[T],
            row: usize,
            chunks: usize,
            chunk: usize,
            neutral: T,
            out: &mut [T],
        ) {
            let here = block_idx().x;
            let at = here / chunks * row;
            let start = here % chunks * chunk;
            let end = (start + chunk).min(row);
            let mut carry = neutral;
            if here % chunks > 0 {
                carry = before[here - 1];
            }
            let mut first = start;
            while first < end {
                let i = first + thread_idx().x;
                let mut value = neutral;
                if i < end {
                    value = x[at + i];
                }
                let upto = block_inclusive_scan(value, |a, b| a $operator b);
                if i < end {
                    out[at + i] = carry $operator upto;
                }
                carry = carry $operator block_reduce(value, |a, b| a $operator b);
                first += BLOCK;
            }
        }
    };
}
scans! { fold_sums scan_sums + }
scans! { fold_products scan_products * }

/// The most elements that are counted, with those that the last tile has no more of.
pub(crate) const MOST: usize = u32::MAX as usize - CHUNK;

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

/// What is scanned with: the kernels, and the neutral element.
struct Scan<T> {
    /// Of one row.
    all: &'static Kernel,
    fold: &'static Kernel,
    scan: &'static Kernel,
    neutral: T,
    op: Op<'static>,
}

impl<T: NumberElement> Scan<T> {
    /// Scans the rows of a matrix, whose elements lie one after the other.
    fn rows(&self, x: &Array<T>) -> Result<Array<T>> {
        let (rows, row) = (x.dims()[0], x.dims()[1]);
        if rows == 1 {
            let part = x.as_part()?;
            let out = scan_all(x.arrays.jit(), self.all, part, row, self.neutral, false)?;
            x.arrays.count_launch();
            return x.arrays.adopt(out, (1, row));
        }
        let (arrays, chunks) = (&x.arrays, row.div_ceil(CHUNK));
        let mut out = arrays.unspecified((rows, row))?;
        if out.is_empty() {
            return Ok(out);
        }
        let blocks = (rows * chunks) as u32;
        let place = [row as u32, chunks as u32, CHUNK as u32];
        let mut sums = arrays.unspecified::<T>((rows, chunks))?;
        if chunks > 1 {
            let [row, chunks, chunk] = place.map(IntoArg::into_arg);
            let part = x.as_part()?.into_arg();
            let args = [
                part,
                row,
                chunks,
                chunk,
                self.neutral.into_arg(),
                sums.owned()?.into_arg(),
            ];
            arrays
                .jit()
                .launch(self.fold, blocks, BLOCK as u32, &args)?;
            arrays.count_launch();
            sums = self.rows(&sums)?;
        }
        let [row, chunks, chunk] = place.map(IntoArg::into_arg);
        let (part, before) = (x.as_part()?.into_arg(), sums.as_part()?.into_arg());
        let args = [
            part,
            before,
            row,
            chunks,
            chunk,
            self.neutral.into_arg(),
            out.owned()?.into_arg(),
        ];
        arrays
            .jit()
            .launch(self.scan, blocks, BLOCK as u32, &args)?;
        arrays.count_launch();
        Ok(out)
    }

    fn along(&self, x: &Array<T>, axis: isize) -> Result<Array<T>> {
        along(x, (axis, self.op), |x| self.rows(x))
    }
}

/// Has the elements along a dimension be scanned where they are, or as the rows of a matrix, whose elements lie one after
/// the other.
fn along<T: Element>(
    x: &Array<T>,
    (axis, op): (isize, Op<'_>),
    scan_rows: impl FnOnce(&Array<T>) -> Result<Array<T>>,
) -> Result<Array<T>> {
    let axis = axis_of(axis, x.shape())?;
    x.counted("a running sum, product or fold", MOST)?;
    let lines = Lines::of(x.dims(), axis);
    if !x.is_empty() && lines.are_beside_each_other() {
        return lines::scan(&x.contiguous()?, lines, op);
    }
    let axis = axis as isize;
    let last = x.swap_axes(axis, -1)?;
    let dims = last.dims().to_vec();
    let row = dims.last().copied().unwrap_or(1);
    let rows = last.len().checked_div(row).unwrap_or(0);
    let scanned = scan_rows(&last.contiguous()?.reshape((rows, row))?)?;
    scanned.reshape(dims)?.swap_axes(axis, -1)
}

impl<T: Element> Array<T> {
    /// What the elements along a dimension up to each of them come to, with it, by an associative operation, which need
    /// not be commutative (NumPy's `ufunc.accumulate`, CUDA.jl's `accumulate`). Elements may be structs.
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
        along(self, (axis, by), |x| any::rows(x, &op.applied))
    }
}

impl<T: NumberElement> Array<T> {
    /// The sums of the elements along a dimension up to each of them, with it (NumPy's `cumsum`).
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
            all: scan_all_sums.get()?,
            fold: fold_sums.get()?,
            scan: scan_sums.get()?,
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
            all: scan_all_products.get()?,
            fold: fold_products.get()?,
            scan: scan_products.get()?,
            neutral: T::ONE,
            op: Op::Product,
        };
        scan.along(self, axis)
    }
}
