//! Arrays of ndarray to buffers and back, with the feature `ndarray`.
//!
//! ```
//! use kiln::prelude::*;
//! use ndarray::{Array2, array, s};
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let image = array![[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
//! let rows = Buffer::from_array(jit.device(), &image)?; // as it lies
//! let columns = Buffer::from_array(jit.device(), &image.t())?; // copied into the order of its indices first
//! assert_eq!(columns.to_vec()?, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
//! let part = Buffer::from_array(jit.device(), &image.slice(s![.., 1..]))?;
//! assert_eq!(part.to_vec()?, [2.0, 3.0, 5.0, 6.0]);
//! let back: Array2<f32> = rows.to_array((2, 3))?;
//! assert_eq!(back, image);
//! assert!(rows.to_array((2, 4)).is_err());
//! # Ok(())
//! # }
//! ```

use kiln_runtime::Device;
use ndarray::{Array, ArrayRef, Dimension, ShapeBuilder};

use crate::buffer::Buffer;
use crate::error::{MemoryError, Result};
use crate::part::Part;
use crate::value::KernelType;

impl<T: KernelType> Buffer<T> {
    /// A buffer of the elements of an array or a view of one, the last index fastest. An array whose elements lie so is
    /// uploaded as it lies; of any other a copy in this order is made on the host first.
    ///
    /// # Errors
    /// As [`Buffer::from_slice`].
    pub fn from_array<D: Dimension>(device: &Device, array: &ArrayRef<T, D>) -> Result<Self> {
        match array.as_slice() {
            Some(elements) => Buffer::from_slice(device, elements),
            None => Buffer::from_slice(device, &array.iter().copied().collect::<Vec<T>>()),
        }
    }
}

impl<T: KernelType> Part<T> {
    /// The values as an array of a shape, after all work launched before: the last index fastest, or the first one
    /// (`shape.f()`).
    ///
    /// # Errors
    /// A shape of another number of elements; those of [`Part::to_vec`].
    pub fn to_array<D: Dimension>(&self, shape: impl ShapeBuilder<Dim = D>) -> Result<Array<T, D>> {
        let (shape, buffer) = (shape.into_shape_with_order(), self.len());
        let other = || MemoryError::OtherShape {
            buffer,
            shape: shape.raw_dim().slice().to_vec(),
        };
        if shape.raw_dim().size_checked() != Some(buffer) {
            return Err(other().into());
        }
        let values = self.to_vec()?;
        Ok(Array::from_shape_vec(shape.clone(), values).map_err(|_| other())?)
    }
}
