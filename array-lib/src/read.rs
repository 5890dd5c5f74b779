//! What is read of arrays and written to them, one element or all.

use std::sync::Arc;

use kiln_jit_core::runtime::{Buffer, Part};

use crate::eval::copied;
use crate::slice::SliceItem;
use crate::{Array, ArrayError, Element, Result};

impl<T: Element> Array<T> {
    /// The elements, the last dimension fastest. Of a view whose elements do not lie one after the other a copy is made
    /// on the device first.
    ///
    /// # Errors
    /// A fault of a kernel launched before, or a device that has failed.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        match self.is_contiguous() {
            true if self.layout.is_all(self.buffer.len()) => Ok(self.buffer.to_vec()?),
            true => Ok(self.as_part()?.to_vec()?),
            false => Ok(self.copy()?.buffer.to_vec()?),
        }
    }

    /// The element of these indices, one for each dimension.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let mut x = arrays.array(vec![1, 2, 3, 4, 5, 6], (2, 3))?;
    /// assert_eq!((x.get([1, 0])?, x.t().get([2, 1])?), (4, 6));
    /// x.set([0, 2], 30)?;
    /// assert_eq!(x.row(0)?.to_vec()?, [1, 2, 30]);
    /// assert!(x.get([2, 0]).is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Indices of no element; those of [`Array::to_vec`].
    pub fn get(&self, indices: impl AsRef<[usize]>) -> Result<T> {
        let place = self.place(indices.as_ref())?;
        let element = self.buffer.part(place..place + 1)?.to_vec()?;
        Ok(element[0])
    }

    /// Overwrites the element of these indices. What was cloned of the array before, and views of it, stay as they are;
    /// if there are some, the array is copied.
    ///
    /// # Errors
    /// As [`Array::get`].
    pub fn set(&mut self, indices: impl AsRef<[usize]>, value: T) -> Result<()> {
        let place = self.place(indices.as_ref())?;
        self.owned()?.write_at(place, &[value])?;
        Ok(())
    }

    fn place(&self, indices: &[usize]) -> Result<usize> {
        let shape = self.shape();
        if indices.len() != shape.rank() {
            let items = indices.len();
            let shape = shape.clone();
            return Err(ArrayError::Items { items, shape });
        }
        match (0..shape.rank()).find(|axis| indices[*axis] >= shape.dims()[*axis]) {
            None => Ok(self.layout.place(indices)),
            Some(axis) => Err(ArrayError::Outside {
                item: SliceItem::Index(indices[axis] as isize),
                axis,
                shape: shape.clone(),
            }),
        }
    }

    /// The buffer, which nobody else has.
    pub(crate) fn owned(&mut self) -> Result<&mut Buffer<T>> {
        if Arc::get_mut(&mut self.buffer).is_none() {
            self.buffer = Arc::new(copied(&self.arrays, &self.buffer)?);
        }
        // Nobody else has had it since.
        Arc::get_mut(&mut self.buffer).ok_or(ArrayError::InPlace)
    }

    /// The only element.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let total = arrays.ones::<f32>((2, 3))?.sum_axis(..)?;
    /// assert_eq!(total.item()?, 6.0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Any other number of elements than one; those of [`Array::to_vec`].
    pub fn item(&self) -> Result<T> {
        match self.to_vec()?.as_slice() {
            [item] => Ok(*item),
            _ => Err(ArrayError::NotOne {
                shape: self.shape().clone(),
            }),
        }
    }

    /// The buffer that the elements lie in, which kernels and replays of graphs take as `array.buffer()`. Those of a view
    /// are some of its elements, or all in another order: [`Array::contiguous`] and [`Array::as_part`] give what a kernel
    /// can take for them.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.vector(vec![1.0f32, 2.0])?;
    /// assert_eq!(x.slice(s![1..])?.buffer().address(), x.buffer().address());
    /// # Ok(())
    /// # }
    /// ```
    pub fn buffer(&self) -> &Buffer<T> {
        &self.buffer
    }

    /// The elements as an argument of kernels, `&[T]`.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// #[kernel]
    /// fn add(x: &[f32], y: &mut [f32]) {
    ///     let i = global_id().x;
    ///     if i < y.len() {
    ///         y[i] += x[i];
    ///     }
    /// }
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let jit = Jit::new()?;
    /// let arrays = Arrays::new(&jit);
    /// let x = arrays.array(vec![1.0f32, 2.0, 3.0, 4.0], (2, 2))?;
    /// let mut y = arrays.ones(2)?;
    /// add.launch(&jit, (1, 32), x.row(1)?.as_part()?, y.as_part_mut()?)?;
    /// jit.launch(&add, 1, 32, args!(x.row(0)?.as_part()?, y.as_part_mut()?))?;
    /// assert_eq!(y.to_vec()?, [5.0, 7.0]);
    /// let refused = x.t().as_part().expect_err("its elements do not lie one after the other");
    /// assert!(refused.to_string().contains("contiguous()"), "{refused}");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Elements that do not lie one after the other, for which [`Array::contiguous`] is; those of
    /// [`Part::part`](kiln_jit_core::runtime::Part::part).
    pub fn as_part(&self) -> Result<&Part<T>> {
        if !self.is_contiguous() {
            return Err(ArrayError::NotContiguous {
                shape: self.shape().clone(),
                strides: self.strides().to_vec(),
            });
        }
        let start = if self.is_empty() {
            0
        } else {
            self.layout.offset
        };
        Ok(self.buffer.part(start..start + self.len())?)
    }

    /// The elements as an argument of kernels that write them, `&mut [T]`. What was cloned of the array before, and views
    /// of it, stay as they are; if there are some, or if the elements do not lie one after the other, the array gets a
    /// buffer of its own.
    ///
    /// # Errors
    /// As [`Expr::eval`](crate::Expr::eval).
    pub fn as_part_mut(&mut self) -> Result<&mut Part<T>> {
        if !self.layout.is_all(self.buffer.len()) {
            *self = self.copy()?;
        }
        let all = self.len();
        Ok(self.owned()?.part_mut(0..all)?)
    }

    /// The elements as a buffer, one after the other: the array's own without a copy, if nobody else has it and all of it
    /// is the array's; otherwise a copy.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.array(vec![1.0f32, 2.0, 3.0, 4.0], (2, 2))?;
    /// assert_eq!(x.t().into_buffer()?.to_vec()?, [1.0, 3.0, 2.0, 4.0]);
    /// let buffer: Buffer<f32> = x.into_buffer()?; // nobody else has it: no copy
    /// assert_eq!(buffer.len(), 4);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Expr::eval`](crate::Expr::eval).
    pub fn into_buffer(self) -> Result<Buffer<T>> {
        let own = match self.layout.is_all(self.buffer.len()) {
            true => self,
            false => self.copy()?,
        };
        let arrays = own.arrays;
        Arc::try_unwrap(own.buffer).or_else(|shared| copied(&arrays, &shared))
    }
}
