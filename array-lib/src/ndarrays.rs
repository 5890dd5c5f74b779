//! Arrays of the crate `ndarray`, both ways, behind the feature of its name.
//!
//! ```
//! # #[cfg(feature = "ndarray")] {
//! use kiln::prelude::*;
//! use ndarray::{Array2, arr2};
//!
//! # fn main() -> kiln::Result<()> {
//! let arrays = Arrays::new(&Jit::new()?);
//! let host = arr2(&[[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]]);
//! let x = arrays.from_ndarray(&host.t())?; // in any order of elements
//! let doubled: Array2<f32> = (2.0 * &x).eval()?.to_ndarray()?;
//! assert_eq!(doubled, 2.0 * &host.t());
//! # Ok(())
//! # }
//! # }
//! ```

use ndarray::{ArrayRef, Dimension};

use crate::{Array, ArrayError, Arrays, Element, Result, Shape};

impl Arrays {
    /// An array with the shape and the elements of one of the host.
    ///
    /// # Errors
    /// Out of device memory, or a device that has failed.
    pub fn from_ndarray<T: Element, D: Dimension>(
        &self,
        host: &ArrayRef<T, D>,
    ) -> Result<Array<T>> {
        let shape = Shape::new(host.shape());
        match host.as_slice() {
            Some(elements) => self.array(elements, shape),
            None => self.array(host.iter().copied().collect::<Vec<T>>(), shape),
        }
    }
}

impl<T: Element> Array<T> {
    /// An array of the host with the shape and the elements: of as many dimensions as are asked for (`Array2`), or any
    /// (`ArrayD`).
    ///
    /// # Errors
    /// Another number of dimensions; those of [`Array::to_vec`].
    pub fn to_ndarray<D: Dimension>(&self) -> Result<ndarray::Array<T, D>> {
        let other = || ArrayError::Rank {
            rank: D::NDIM.unwrap_or_default(),
            shape: self.shape().clone(),
        };
        let host = ndarray::ArrayD::from_shape_vec(self.dims(), self.to_vec()?);
        let host = host.map_err(|_| other())?;
        host.into_dimensionality().map_err(|_| other())
    }
}
