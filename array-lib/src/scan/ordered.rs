//! Folds in the order of elements, by operators that need not be commutative: what tiles of rows come to, or parts of
//! columns, is folded in the same way until it is one.

use super::any;
use super::lines::{self, Lines, Op};
use super::{MOST, counted};
use crate::function::Applied;
use crate::{Array, Axes, Element, ElementFn, Expr, IntoAxes, Result};

/// An array as one of three dimensions, the second of which has the elements that are folded, in their order: without a
/// copy where the dimensions that are folded are neighbours.
fn folded_second<T: Element>(x: &Array<T>, mask: &[bool]) -> Result<Array<T>> {
    let (dims, rank) = (x.dims(), x.rank());
    let product = |range: &[usize]| range.iter().product::<usize>();
    let first = mask.iter().position(|is| *is).unwrap_or(rank);
    let count = mask.iter().filter(|is| **is).count();
    if mask[first..].iter().take(count).all(|is| *is) {
        let (outer, rest) = dims.split_at(first);
        let (along, inner) = rest.split_at(count);
        return x.reshape((product(outer), product(along), product(inner)));
    }
    let mut order: Vec<usize> = (0..rank).collect();
    order.sort_by_key(|axis| mask[*axis]);
    let last = x.permute(&order)?;
    let (kept, along) = last.dims().split_at(rank - count);
    last.reshape((product(kept), product(along), 1))
}

impl<T: Element> Array<T> {
    /// Folds all elements with an associative operation, which need not be commutative: the result is that of a fold from
    /// the first element to the last, the last dimension fastest (Julia's `foldl`). What is combined with what depends
    /// on the shape and the device alone, so that results have the same bits each time. Without elements the result is
    /// `identity`, the operation's neutral element.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// /// A number of so many digits.
    /// #[derive(KernelType, Copy, Clone, Debug, PartialEq)]
    /// #[repr(C)]
    /// struct Digits {
    ///     number: u32,
    ///     power: u32,
    /// }
    ///
    /// #[device_fn]
    /// fn behind(a: Digits, b: Digits) -> Digits {
    ///     Digits { number: a.number * b.power + b.number, power: a.power * b.power }
    /// }
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.array(vec![1u32, 2, 3, 4], (2, 2))?;
    /// let digits = x.map(device!(|number| Digits { number, power: 10 })).eval()?;
    /// let none = Digits { number: 0, power: 1 };
    /// assert_eq!(digits.reduce_ordered(device!(behind), none)?.number, 1234);
    /// let columns = digits.reduce_axis_ordered(0, device!(behind), none)?;
    /// let numbers = columns.map(device!(|digits| digits.number));
    /// assert_eq!(numbers.eval()?.to_vec()?, [13, 24]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Elements that are more than `u32` has numbers; those of [`Expr::eval`].
    pub fn reduce_ordered(&self, op: ElementFn<(T, T), T>, identity: T) -> Result<T> {
        self.reduce_axis_ordered(.., op, identity)?.item()
    }

    /// Folds in order, as [`Array::reduce_ordered`] does, along some dimensions, which the result does not have: of several
    /// the last is the fastest. The result stays on the device.
    ///
    /// # Errors
    /// A dimension that is not there; those of [`Array::reduce_ordered`].
    pub fn reduce_axis_ordered(
        &self,
        axes: impl IntoAxes,
        op: ElementFn<(T, T), T>,
        identity: T,
    ) -> Result<Array<T>> {
        self.fold_in_order(&axes.into_axes(), &op.applied, identity)
    }

    fn fold_in_order(&self, axes: &Axes, op: &Applied, identity: T) -> Result<Array<T>> {
        counted(self.shape(), "a fold in order", MOST)?;
        let mask = axes.mask(self.shape())?;
        let result = axes.result(self.shape(), &mask);
        if self.is_empty() {
            return self.arrays.full(result, identity);
        }
        let x = folded_second(self, &mask)?;
        let lines = Lines::of(x.dims(), 1);
        if lines.have_threads(&self.arrays, Op::By(op)) {
            let x = x.contiguous()?;
            return lines::fold(&x, lines, Op::By(op))?.reshape(result);
        }
        let rows = x.swap_axes(1, 2)?.contiguous()?;
        let rows = rows.reshape((lines.outer * lines.inner, lines.along))?;
        any::fold(&rows, op)?.reshape(result)
    }
}

impl<T: Element> Expr<T> {
    /// Folds all elements in order; see [`Array::reduce_ordered`]. The expression is computed before.
    ///
    /// # Errors
    /// As [`Array::reduce_ordered`].
    pub fn reduce_ordered(&self, op: ElementFn<(T, T), T>, identity: T) -> Result<T> {
        self.eval()?.reduce_ordered(op, identity)
    }

    /// Folds in order along some dimensions; see [`Array::reduce_axis_ordered`]. The expression is computed before.
    ///
    /// # Errors
    /// As [`Array::reduce_axis_ordered`].
    pub fn reduce_axis_ordered(
        &self,
        axes: impl IntoAxes,
        op: ElementFn<(T, T), T>,
        identity: T,
    ) -> Result<Array<T>> {
        self.eval()?.reduce_axis_ordered(axes, op, identity)
    }
}
