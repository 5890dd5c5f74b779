//! Elements that are looked up: by their numbers along a dimension, and by their order.

use std::sync::Arc;

use kiln_jit_core::build::Val;

use crate::expr::Node;
use crate::function::FunctionName;
use crate::layout::axis_of;
use crate::neighbor::Reads;
use crate::slice::SliceItem;
use crate::sort::SortElement;
use crate::{Array, ArrayError, Element, Expr, IntoExpr, NumberElement, Result, Shape, where_};

/// On which side of equal elements a value goes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Side {
    /// Before them.
    Left,
    /// Behind them.
    Right,
}

impl<T: Element> Array<T> {
    /// Refuses what is no vector of at least so many elements.
    pub(crate) fn vector(&self, what: &'static str, least: usize) -> Result<()> {
        match self.rank() == 1 && self.len() >= least {
            true => Ok(self.narrow(what)?),
            false => Err(ArrayError::Vector {
                what,
                least,
                shape: self.shape().clone(),
            }),
        }
    }

    /// For each index, which there is for each element of the result, the element that has it along a dimension, and the
    /// result's own indices along the others (NumPy's `take_along_axis`): an expression. An index that is not there is a
    /// fault of the kernel, which the next read tells.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.array(vec![30, 10, 20, 5, 6, 4], (2, 3))?;
    /// let order = x.argsort(1)?;
    /// assert_eq!(x.take_along(&order, 1)?.eval()?.to_vec()?, [10, 20, 30, 4, 5, 6]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A dimension that is not there, other dimensions than those of the indices, 2^32 elements or more.
    #[track_caller]
    pub fn take_along(&self, indices: impl IntoExpr<u32>, axis: isize) -> Result<Expr<T>> {
        let place = std::panic::Location::caller();
        self.narrow("`take_along`")?;
        let axis = axis_of(axis, self.shape())?;
        let indices = indices.into_expr();
        let shape = indices.shape.clone()?;
        let mut layout = self.layout.clone();
        let dims = self.dims().iter().enumerate();
        let here = shape.dims().get(axis).copied().unwrap_or(0);
        layout.shape = Shape::of(dims.map(|(at, dim)| if at == axis { here } else { *dim }));
        layout.strides[axis] = 0;
        if layout.shape != shape {
            return Err(crate::ShapeMismatch {
                left: self.shape().clone(),
                right: shape,
                at: Some(place),
            }
            .into());
        }
        let mut reads = Reads::of(self);
        reads.args.push(Arc::new(Node::Place(layout)));
        reads.expr(&indices);
        reads.number(self.dims()[axis] as u32);
        reads.number(self.strides()[axis] as u32);
        let name = Some(FunctionName::Operation("take_along".into()));
        Ok(reads.apply((&self.arrays, Ok(shape)), name, |args| {
            let (at, n, by) = (args[2], args[3], args[4]);
            crate::indexed::within(at, n);
            args[0].at(args[1] + at * by).get()
        }))
    }

    /// The array again and again along each dimension (NumPy's `tile`).
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.array(vec![1, 2], (1, 2))?;
    /// assert_eq!(x.tile([2, 2])?.to_vec()?, [1, 2, 1, 2, 1, 2, 1, 2]);
    /// assert_eq!(x.repeat(2, 1)?.to_vec()?, [1, 1, 2, 2]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Other numbers than there are dimensions; those of [`Expr::eval`].
    pub fn tile(&self, times: impl AsRef<[usize]>) -> Result<Array<T>> {
        let times = times.as_ref();
        if times.len() != self.rank() {
            let (items, shape) = (times.len(), self.shape().clone());
            return Err(ArrayError::Items { items, shape });
        }
        let dims = || times.iter().zip(self.dims());
        let apart: Vec<usize> = dims().flat_map(|(_, dim)| [1, *dim]).collect();
        let together: Vec<usize> = dims().flat_map(|(times, dim)| [*times, *dim]).collect();
        let whole: Vec<usize> = dims()
            .map(|(times, dim)| times.saturating_mul(*dim))
            .collect();
        let apart = self.reshape(apart.as_slice())?;
        apart
            .broadcast_to(together.as_slice())?
            .reshape(whole.as_slice())
    }

    /// Each element so many times along a dimension (NumPy's `repeat`). [`Array::tile`] has an example.
    ///
    /// # Errors
    /// A dimension that is not there; those of [`Expr::eval`].
    pub fn repeat(&self, times: usize, axis: isize) -> Result<Array<T>> {
        let axis = axis_of(axis, self.shape())?;
        let behind = self.insert_axis(axis as isize + 1)?;
        let mut dims = behind.dims().to_vec();
        dims[axis + 1] = times;
        let repeated = behind.broadcast_to(dims.as_slice())?;
        let here = dims.remove(axis + 1);
        dims[axis] = dims[axis].saturating_mul(here);
        repeated.reshape(dims.as_slice())
    }
}

impl<T: NumberElement> Array<T> {
    /// Where in this vector, whose elements are in order, each value goes (NumPy's `searchsorted`): an expression. NaNs are
    /// behind all others.
    ///
    /// ```
    /// use kiln::array::Side;
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let sorted = arrays.vector(vec![1.0f32, 2.0, 2.0, 4.0])?;
    /// let values = arrays.vector(vec![2.0f32, 0.0, 9.0])?;
    /// assert_eq!(sorted.searchsorted(&values, Side::Left)?.eval()?.to_vec()?, [1, 0, 4]);
    /// assert_eq!(sorted.searchsorted(&values, Side::Right)?.eval()?.to_vec()?, [3, 0, 4]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// What is no vector, or has 2^32 elements or more.
    pub fn searchsorted(&self, values: impl IntoExpr<T>, side: Side) -> Result<Expr<u32>> {
        self.vector("the elements that are searched", 0)?;
        let values = values.into_expr();
        let mut reads = Reads::of(self);
        reads.number(self.len() as u32);
        reads.number(self.layout.offset as u32);
        reads.number(self.strides()[0] as u32);
        reads.expr(&values);
        let at = (&self.arrays, values.shape.clone());
        let name = |name: &'static str| Some(FunctionName::Operation(name.into()));
        Ok(match side {
            Side::Left => reads.apply(at, name("searchsorted_left"), |args| {
                search(args, Side::Left)
            }),
            Side::Right => reads.apply(at, name("searchsorted_right"), |args| {
                search(args, Side::Right)
            }),
        })
    }

    /// How many elements are between each two neighbours of `edges`, which are in order (NumPy's `histogram`): from the lower
    /// up to the upper one, which belongs to the last alone. What is outside, and NaN, is not counted.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.vector(vec![0.0f32, 0.1, 0.5, 0.9, 1.0, 7.0])?;
    /// let edges = arrays.linspace(0.0f32, 1.0, 3)?;
    /// assert_eq!(x.histogram(&edges)?.to_vec()?, [2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Edges that are no vector of at least two; those of [`Array::bincount`].
    pub fn histogram(&self, edges: &Array<T>) -> Result<Array<u32>> {
        edges.vector("the edges of a histogram", 2)?;
        self.narrow("a histogram")?;
        let bins = edges.len() - 1;
        let last = edges.get([bins])?;
        // Before the first edge it is the largest number.
        let bin = edges.searchsorted(self, Side::Right)? - 1;
        let bin = where_(self.eq(last), bins as u32 - 1, bin);
        bin.eval()?.bincount(bins)
    }
}

/// Of a vector, its length, the first element, how far it is to the next, and a value: where that goes.
pub(crate) fn search<'k>(args: &[Val<'k>], side: Side) -> Val<'k> {
    let (x, len, first, by, value) = (args[0], args[1], args[2], args[3], args[4]);
    let k = x.builder();
    // NaN, the only one that is not itself, is behind all.
    let is_less = |a: Val<'k>, b: Val<'k>| a.lt(b) | (b.ne(b) & a.eq(a));
    let (low, high) = (k.var("low", k.lit(len.ty(), 0)), k.var("high", len));
    k.while_(
        || low.get().lt(high.get()),
        || {
            let middle = low.get() + (high.get() - low.get()) / 2u32;
            let element = x.at(first + middle * by).get().cast(value.ty());
            let is_before = match side {
                Side::Left => is_less(element, value),
                Side::Right => !is_less(value, element),
            };
            low.set(is_before.select(middle + 1u32, low.get()));
            high.set(is_before.select(high.get(), middle));
        },
    );
    low.get()
}

impl<T: Element + SortElement> Array<T> {
    /// The largest elements along a dimension, so many, the largest first, NaNs before all; and which they are (PyTorch's
    /// `topk`).
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.vector(vec![3.0f32, 9.0, -1.0, 5.0])?;
    /// let (largest, which) = x.top_k(2, 0)?;
    /// assert_eq!((largest.to_vec()?, which.to_vec()?), (vec![9.0, 5.0], vec![1, 3]));
    /// let ages = arrays.vector(vec![30u32, 20, 40, 10])?;
    /// assert_eq!(x.sort_by_key(&ages, 0)?.to_vec()?, [5.0, 9.0, 3.0, -1.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// More than there are; those of [`Array::sort`].
    pub fn top_k(&self, count: usize, axis: isize) -> Result<(Array<T>, Array<u32>)> {
        let at = axis_of(axis, self.shape())?;
        let dim = self.dims()[at];
        let Some(first) = dim.checked_sub(count) else {
            let shape = self.shape().clone();
            return Err(ArrayError::Window {
                count,
                axis: at,
                shape,
            });
        };
        let mut items = vec![SliceItem::from(..); at];
        items.push(SliceItem::from(first..dim));
        let which = self.argsort(axis)?.slice(items)?.flip(axis)?;
        let largest = self.take_along(&which, axis)?.eval()?;
        Ok((largest, which))
    }
}

impl<T: Element> Array<T> {
    /// The elements in the order of keys along a dimension; those of alike keys stay in theirs. [`Array::top_k`] has an
    /// example.
    ///
    /// # Errors
    /// Keys of another shape; those of [`Array::sort`].
    #[track_caller]
    pub fn sort_by_key<K: Element + SortElement>(
        &self,
        keys: &Array<K>,
        axis: isize,
    ) -> Result<Array<T>> {
        if keys.shape() != self.shape() {
            return Err(crate::ShapeMismatch {
                left: self.shape().clone(),
                right: keys.shape().clone(),
                at: Some(std::panic::Location::caller()),
            }
            .into());
        }
        self.take_along(&keys.argsort(axis)?, axis)?.eval()
    }
}
