//! Arrays as arguments of kernels that have their dimensions: views with an index for each.
//!
//! A kernel takes `a: View2<'_, f32>` and reads `a.at(i, j)`, or `a: View2Mut<'_, f32>` and writes `a.set(i, j, value)`; the
//! host passes `x.as_view2()?` or `y.as_view2_mut()?`. Any layout goes, also one that is no slice. Each index is checked.
//!
//! ```
//! use kiln::array::{View2, View2Mut};
//! use kiln::prelude::*;
//!
//! /// Rotates an image by a quarter.
//! #[kernel]
//! fn rotate(x: View2<'_, f32>, mut y: View2Mut<'_, f32>) {
//!     let (i, j) = (global_id().y, global_id().x);
//!     if i < y.dim(0) && j < y.dim(1) {
//!         y.set(i, j, x.at(j, x.dim(1) - 1 - i));
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let arrays = Arrays::new(&jit);
//! let x = arrays.array(vec![1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], (2, 3))?;
//! let mut y = arrays.zeros::<f32>((3, 2))?;
//! rotate.launch(&jit, (1, (8, 8)), x.as_view2()?, y.as_view2_mut()?)?;
//! assert_eq!(y.to_vec()?, [3.0, 6.0, 2.0, 5.0, 1.0, 4.0]);
//! let mut z = arrays.zeros::<f32>((2, 3))?;
//! jit.launch(&rotate, 1, (8, 8), args!(x.t().as_view2()?, z.as_view2_mut()?))?; // a view of other strides
//! assert_eq!(z.to_vec()?, [4.0, 5.0, 6.0, 1.0, 2.0, 3.0]);
//! # Ok(())
//! # }
//! ```

use kiln_kernel_macro::{KernelView, device_fn};

use crate::{Array, ArrayError, Element, Result};

/// Views of so many dimensions: what kernels read, what they write, and what makes them.
macro_rules! views {
    ($(
        $rank:literal $view:ident $args:ident $as_view:ident, $view_mut:ident $args_mut:ident $as_view_mut:ident:
        $($index:ident $axis:literal)*;
    )*) => {$(
        #[doc = concat!("An array of ", $rank, " dimensions in a kernel; `", stringify!($as_view), "` of an array is passed for it.")]
        #[derive(KernelView)]
        pub struct $view<'a, T> {
            data: &'a [T],
            start: u32,
            dims: [u32; $rank],
            strides: [u32; $rank],
        }

        #[doc = concat!("An array of ", $rank, " dimensions that a kernel writes; `", stringify!($as_view_mut), "` of an array is passed for it.")]
        #[derive(KernelView)]
        pub struct $view_mut<'a, T> {
            data: &'a mut [T],
            start: u32,
            dims: [u32; $rank],
            strides: [u32; $rank],
        }

        #[device_fn]
        impl<T: DeviceType> $view<'_, T> {
            /// The extent of a dimension.
            pub fn dim(&self, axis: usize) -> usize {
                self.dims[axis] as usize
            }

            /// The element of these indices. The thread ends if there is none.
            pub fn at(&self, $($index: usize),*) -> T {
                let is_there = $($index < self.dims[$axis] as usize)&&*;
                assert!(is_there, "an index is outside of the view");
                let place = self.start $(.wrapping_add(($index as u32).wrapping_mul(self.strides[$axis])))*;
                self.data[place as usize]
            }
        }

        #[device_fn]
        impl<T: DeviceType> $view_mut<'_, T> {
            /// The extent of a dimension.
            pub fn dim(&self, axis: usize) -> usize {
                self.dims[axis] as usize
            }

            /// The element of these indices. The thread ends if there is none.
            pub fn at(&self, $($index: usize),*) -> T {
                let is_there = $($index < self.dims[$axis] as usize)&&*;
                assert!(is_there, "an index is outside of the view");
                let place = self.start $(.wrapping_add(($index as u32).wrapping_mul(self.strides[$axis])))*;
                self.data[place as usize]
            }

            /// Overwrites the element of these indices. The thread ends if there is none.
            pub fn set(&mut self, $($index: usize,)* value: T) {
                let is_there = $($index < self.dims[$axis] as usize)&&*;
                assert!(is_there, "an index is outside of the view");
                let place = self.start $(.wrapping_add(($index as u32).wrapping_mul(self.strides[$axis])))*;
                self.data[place as usize] = value;
            }
        }

        impl<T: Element> Array<T> {
            #[doc = concat!("The array as an argument of kernels that take a [`", stringify!($view), "`].")]
            ///
            /// # Errors
            /// Another number of dimensions; a buffer of 2^32 elements or more.
            pub fn $as_view(&self) -> Result<$args<'_, T>> {
                let Place { start, dims, strides } = self.in_kernel()?;
                Ok($args { data: &self.buffer, start, dims, strides })
            }

            #[doc = concat!("The array as an argument of kernels that take a [`", stringify!($view_mut), "`].")]
            /// What was cloned of the array before, and views of it, stay as they are; if there are some, it is copied.
            ///
            /// # Errors
            /// Another number of dimensions; a buffer of 2^32 elements or more; as [`Expr::eval`](crate::Expr::eval).
            pub fn $as_view_mut(&mut self) -> Result<$args_mut<'_, T>> {
                let Place { start, dims, strides } = self.in_kernel()?;
                Ok($args_mut { data: self.owned()?, start, dims, strides })
            }
        }
    )*};
}
views! {
    1 View1 View1Args as_view1, View1Mut View1MutArgs as_view1_mut: i 0;
    2 View2 View2Args as_view2, View2Mut View2MutArgs as_view2_mut: i 0 j 1;
    3 View3 View3Args as_view3, View3Mut View3MutArgs as_view3_mut: i 0 j 1 k 2;
}

/// Where an array's elements lie, as views say it: distances may be negative, and sums of them are right modulo 2^32.
struct Place<const N: usize> {
    start: u32,
    dims: [u32; N],
    strides: [u32; N],
}

impl<T: Element> Array<T> {
    fn in_kernel<const N: usize>(&self) -> Result<Place<N>> {
        let refused = || ArrayError::View {
            rank: N,
            shape: self.shape().clone(),
        };
        if self.rank() != N || self.buffer.len() > u32::MAX as usize {
            return Err(refused());
        }
        Ok(Place {
            start: self.layout.offset as u32,
            dims: std::array::from_fn(|axis| self.dims()[axis] as u32),
            strides: std::array::from_fn(|axis| self.strides()[axis] as u32),
        })
    }
}
