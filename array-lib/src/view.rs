//! Views: other shapes and parts of an array, which share its buffer.

use crate::layout::{Layout, axis_of};
use crate::slice::SliceItem;
use crate::{Array, ArrayError, ArrayMut, Element, IntoShape, Result, Shape};

impl<T: Element> Array<T> {
    fn view(&self, layout: Layout) -> Array<T> {
        Array {
            arrays: self.arrays.clone(),
            buffer: self.buffer.clone(),
            layout,
        }
    }

    /// Some of the elements, as [`s!`](crate::s) says which.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.array((0..12).collect::<Vec<i32>>(), (3, 4))?;
    /// // What lies to the right less what lies to the left: one kernel, no copy.
    /// let slope = (x.slice(s![.., 2..])? - x.slice(s![.., ..-2])?).eval()?;
    /// assert_eq!(slope.to_vec()?, [2; 6]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// An index or a range that is not there, more of them than there are dimensions.
    pub fn slice(&self, items: impl AsRef<[SliceItem]>) -> Result<Array<T>> {
        Ok(self.view(self.layout.sliced(items.as_ref())?))
    }

    /// Some of the elements, to be [written](ArrayMut::assign).
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let mut x = arrays.zeros::<i32>((2, 2))?;
    /// x.slice_mut(s![.., 0])?.assign(7)?;
    /// assert_eq!(x.to_vec()?, [7, 0, 7, 0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Array::slice`].
    pub fn slice_mut(&mut self, items: impl AsRef<[SliceItem]>) -> Result<ArrayMut<'_, T>> {
        let layout = self.layout.sliced(items.as_ref())?;
        let array = self;
        Ok(ArrayMut { array, layout })
    }

    /// The elements with this index along a dimension, which the view does not have. Negative numbers count from the
    /// end.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.array((0..12).collect::<Vec<i32>>(), (3, 4))?;
    /// assert_eq!(x.index_axis(0, -1)?.to_vec()?, [8, 9, 10, 11]);
    /// assert_eq!((x.row(1)?.to_vec()?, x.column(1)?.to_vec()?), (vec![4, 5, 6, 7], vec![1, 5, 9]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A dimension or an index that is not there.
    pub fn index_axis(&self, axis: isize, index: isize) -> Result<Array<T>> {
        Ok(self.view(self.layout.indexed(axis, index)?))
    }

    /// A row: the elements with this index along the last dimension but one.
    ///
    /// # Errors
    /// As [`Array::index_axis`].
    pub fn row(&self, index: isize) -> Result<Array<T>> {
        self.index_axis(-2, index)
    }

    /// A column: the elements with this index along the last dimension.
    ///
    /// # Errors
    /// As [`Array::index_axis`].
    pub fn column(&self, index: isize) -> Result<Array<T>> {
        self.index_axis(-1, index)
    }

    /// The transpose: all dimensions the other way round.
    pub fn t(&self) -> Array<T> {
        let order: Vec<usize> = (0..self.rank()).rev().collect();
        self.view(self.layout.permuted(&order))
    }

    /// The dimensions in another order.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.zeros::<f32>((2, 3, 4))?;
    /// assert_eq!(x.permute([2, 0, 1])?.dims(), [4, 2, 3]);
    /// assert_eq!((x.t().dims(), x.swap_axes(0, -1)?.dims()), (&[4, 3, 2][..], &[4, 3, 2][..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Numbers that are not each dimension once.
    pub fn permute(&self, order: impl AsRef<[usize]>) -> Result<Array<T>> {
        let order = order.as_ref();
        let is_there = |axis: usize| order.contains(&axis);
        match order.len() == self.rank() && (0..self.rank()).all(is_there) {
            true => Ok(self.view(self.layout.permuted(order))),
            false => Err(ArrayError::Order {
                order: order.to_vec(),
                shape: self.shape().clone(),
            }),
        }
    }

    /// Two dimensions, each in the place of the other. Negative numbers count from the end.
    ///
    /// # Errors
    /// A dimension that is not there.
    pub fn swap_axes(&self, a: isize, b: isize) -> Result<Array<T>> {
        let (a, b) = (axis_of(a, self.shape())?, axis_of(b, self.shape())?);
        let mut order: Vec<usize> = (0..self.rank()).collect();
        order.swap(a, b);
        Ok(self.view(self.layout.permuted(&order)))
    }

    /// The elements, in their order, as those of another shape of as many: a view where they lie as it needs them,
    /// otherwise a copy, by a kernel.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.arange(0, 6, 1)?.reshape((2, 3))?; // a view
    /// assert_eq!(arrays.launches(), 1);
    /// assert_eq!(x.t().flatten()?.to_vec()?, [0, 3, 1, 4, 2, 5]); // a copy
    /// assert_eq!(arrays.launches(), 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A shape of another number of elements; those of [`Expr::eval`](crate::Expr::eval).
    pub fn reshape(&self, shape: impl IntoShape) -> Result<Array<T>> {
        let shape = shape.into_shape();
        if shape.len() != self.len() {
            return Err(ArrayError::Count {
                values: self.len(),
                shape,
            });
        }
        match self.layout.reshaped(&shape) {
            Some(layout) => Ok(self.view(layout)),
            None => self.copy()?.reshape(shape),
        }
    }

    /// The elements as a vector; a view or a copy, as [`Array::reshape`].
    ///
    /// # Errors
    /// As there.
    pub fn flatten(&self) -> Result<Array<T>> {
        self.reshape(self.len())
    }

    /// The elements as those of a larger shape, along whose other dimensions they repeat; nothing is copied.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.vector(vec![1, 2])?.insert_axis(1)?.broadcast_to((2, 3))?;
    /// assert_eq!(x.to_vec()?, [1, 1, 1, 2, 2, 2]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A shape that the array's does not go with.
    #[track_caller]
    pub fn broadcast_to(&self, shape: impl IntoShape) -> Result<Array<T>> {
        let shape = shape.into_shape();
        let place = std::panic::Location::caller();
        match self.layout.broadcast_to(&shape) {
            Some(layout) => Ok(self.view(layout)),
            None => Err(crate::ShapeMismatch {
                left: self.shape().clone(),
                right: shape,
                at: Some(place),
            }
            .into()),
        }
    }

    /// The elements along a dimension from the last to the first.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.array(vec![1, 2, 3, 4, 5, 6], (2, 3))?;
    /// assert_eq!(x.flip(1)?.to_vec()?, [3, 2, 1, 6, 5, 4]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A dimension that is not there.
    pub fn flip(&self, axis: isize) -> Result<Array<T>> {
        let axis = axis_of(axis, self.shape())?;
        let dim = self.dims()[axis];
        let layout = self.layout.stepped(axis, (dim.saturating_sub(1), -1, dim));
        Ok(self.view(layout))
    }

    /// The elements whose last two indices are equal, along one dimension, the last.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.array(vec![1, 2, 3, 4, 5, 6], (2, 3))?;
    /// assert_eq!(x.diagonal()?.to_vec()?, [1, 5]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Fewer than two dimensions.
    pub fn diagonal(&self) -> Result<Array<T>> {
        let (a, b) = (axis_of(-2, self.shape())?, axis_of(-1, self.shape())?);
        let dim = self.dims()[a].min(self.dims()[b]);
        let stride = self.strides()[a] + self.strides()[b];
        let mut layout = self.layout.clone();
        layout.shape = Shape::of(self.dims()[..a].iter().copied().chain([dim]));
        layout.strides.truncate(a);
        layout.strides.push(stride);
        Ok(self.view(layout))
    }

    /// All parts of so many neighbours along a dimension, one behind the other: the neighbours are a dimension more, the
    /// last. Nothing is copied.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.vector(vec![1.0f32, 2.0, 6.0, 4.0, 2.0])?;
    /// let windows = x.windows(0, 3)?;
    /// assert_eq!(windows.shape().to_string(), "3x3");
    /// assert_eq!(windows.mean_axis(1)?.to_vec()?, [3.0, 4.0, 4.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A dimension that is not there; no neighbours, or more than there are elements.
    pub fn windows(&self, axis: isize, count: usize) -> Result<Array<T>> {
        let axis = axis_of(axis, self.shape())?;
        let dim = self.dims()[axis];
        if count == 0 || count > dim {
            let shape = self.shape().clone();
            return Err(ArrayError::Window { count, axis, shape });
        }
        let starts = self.layout.stepped(axis, (0, 1, dim - count + 1));
        let neighbours = (count, self.strides()[axis]);
        Ok(self.view(starts.with(self.rank(), neighbours)))
    }

    /// One more dimension, of one element, which is then the one with this number; negative numbers count from behind
    /// the last (NumPy's `expand_dims`).
    ///
    /// # Errors
    /// A number that the view has no dimension for.
    pub fn insert_axis(&self, axis: isize) -> Result<Array<T>> {
        let more = self.layout.with(0, (1, 0));
        let axis = axis_of(axis, &more.shape)?;
        Ok(self.view(self.layout.with(axis, (1, 0))))
    }

    /// Without the dimensions of one element.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.vector(vec![1, 2])?;
    /// assert_eq!(x.insert_axis(0)?.insert_axis(-1)?.dims(), [1, 2, 1]);
    /// assert_eq!(x.insert_axis(0)?.squeeze().dims(), [2]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn squeeze(&self) -> Array<T> {
        let longer = |axis: &usize| self.dims()[*axis] != 1;
        let order: Vec<usize> = (0..self.rank()).filter(longer).collect();
        self.view(self.layout.permuted(&order))
    }
}
