//! Arrays as arguments of kernels: as slices, or with an index for each dimension.
//!
//! A kernel takes an array for a slice, `&x` or `&mut y`, if its elements lie one after the other. It takes `a: View2<'_, f32>`
//! and reads `a[(i, j)]`, or `mut a: View2Mut<'_, f32>` and assigns `a[(i, j)]`, for any layout, also one that is no slice. Each
//! index is checked. `Kernel::launch` with a list of arguments does not see what a parameter is: there an array is a slice,
//! and `x.as_view2()?` or `y.as_view2_mut()?` a view.
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
//!         y[(i, j)] = x[(j, x.dim(1) - 1 - i)]; // or `y.set(i, j, x.at(j, ..))`
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let arrays = Arrays::new(&jit);
//! let x = arrays.array(vec![1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], (2, 3))?;
//! let mut y = arrays.zeros::<f32>((3, 2))?;
//! rotate.launch(&jit, (1, (8, 8)), &x, &mut y)?;
//! assert_eq!(y.to_vec()?, [3.0, 6.0, 2.0, 5.0, 1.0, 4.0]);
//! let mut z = arrays.zeros::<f32>((2, 3))?;
//! jit.launch(&rotate, 1, (8, 8), args!(x.t().as_view2()?, z.as_view2_mut()?))?; // a view of other strides
//! assert_eq!(z.to_vec()?, [4.0, 5.0, 6.0, 1.0, 2.0, 3.0]);
//! # Ok(())
//! # }
//! ```

use std::ops::{Index, IndexMut};

use kiln_jit_core::args::{Arg, IntoArg};
use kiln_jit_core::error::Error;
use kiln_jit_core::runtime::Part;
use kiln_jit_core::value::DeviceType;
use kiln_jit_core::view::{IntoView, ToSlice, ToSliceMut};
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
                self.data[self.place($($index),*)]
            }

            fn place(&self, $($index: usize),*) -> usize {
                let is_there = $($index < self.dims[$axis] as usize)&&*;
                assert!(is_there, "an index is outside of the view");
                let place = self.start $(.wrapping_add(($index as u32).wrapping_mul(self.strides[$axis])))*;
                place as usize
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
                self.data[self.place($($index),*)]
            }

            /// Overwrites the element of these indices. The thread ends if there is none.
            pub fn set(&mut self, $($index: usize,)* value: T) {
                let place = self.place($($index),*);
                self.data[place] = value;
            }

            fn place(&self, $($index: usize),*) -> usize {
                let is_there = $($index < self.dims[$axis] as usize)&&*;
                assert!(is_there, "an index is outside of the view");
                let place = self.start $(.wrapping_add(($index as u32).wrapping_mul(self.strides[$axis])))*;
                place as usize
            }
        }

        /// What a kernel of this view is launched with.
        impl<'a, T: Element> IntoView<'a, $view<'a, T>> for &'a Array<T> {
            fn into_view(self) -> Result<$args<'a, T>, Error> {
                Ok(self.$as_view()?)
            }
        }

        /// What a kernel of this view is launched with, which writes it.
        impl<'a, T: Element> IntoView<'a, $view_mut<'a, T>> for &'a mut Array<T> {
            fn into_view(self) -> Result<$args_mut<'a, T>, Error> {
                Ok(self.$as_view_mut()?)
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

/// The elements of views of several dimensions, `a[(i, j)]`.
macro_rules! elements {
    ($($view:ident $view_mut:ident: $($index:ident $of:ident)*;)*) => {$(
        /// The element of these indices. The thread ends if there is none.
        #[device_fn]
        impl<T: DeviceType> Index<($($of),*)> for $view<'_, T> {
            type Output = T;
            fn index(&self, indices: ($($of),*)) -> &T {
                let ($($index),*) = indices;
                &self.data[self.place($($index),*)]
            }
        }

        /// The element of these indices. The thread ends if there is none.
        #[device_fn]
        impl<T: DeviceType> Index<($($of),*)> for $view_mut<'_, T> {
            type Output = T;
            fn index(&self, indices: ($($of),*)) -> &T {
                let ($($index),*) = indices;
                &self.data[self.place($($index),*)]
            }
        }

        /// The element of these indices. The thread ends if there is none.
        impl<T: DeviceType> IndexMut<($($of),*)> for $view_mut<'_, T> {
            fn index_mut(&mut self, indices: ($($of),*)) -> &mut T {
                let ($($index),*) = indices;
                let place = self.place($($index),*);
                &mut self.data[place]
            }
        }
    )*};
}
elements! {
    View2 View2Mut: i usize j usize;
    View3 View3Mut: i usize j usize k usize;
}

/// A kernel takes an array whose elements lie one after the other for a slice.
impl<T: Element> ToSlice<T> for Array<T> {
    fn to_slice(&self) -> Result<&Part<T>, Error> {
        Ok(self.as_part()?)
    }
}

/// A kernel takes an array whose elements lie one after the other for a slice that it writes. What was cloned of the
/// array before, and views of it, stay as they are.
impl<T: Element> ToSliceMut<T> for Array<T> {
    fn to_slice_mut(&mut self) -> Result<&mut Part<T>, Error> {
        Ok(self.as_part_mut()?)
    }
}

/// An argument that cannot be passed, for this reason.
fn refused<'a, T: Element>(mutable: bool, why: ArrayError) -> Arg<'a> {
    let text = why.to_string();
    let layout = match why {
        ArrayError::NotContiguous { shape, strides } => Some((shape, strides)),
        _ => None,
    };
    Arg::refused_slice::<T>(mutable, move || {
        let why = match layout.clone() {
            Some((shape, strides)) => ArrayError::NotContiguous { shape, strides },
            None => ArrayError::NotPassed { why: text.clone() },
        };
        why.into()
    })
}

impl<'a, T: Element> IntoArg<'a> for &'a Array<T> {
    fn into_arg(self) -> Arg<'a> {
        match self.as_part() {
            Ok(part) => part.into_arg(),
            Err(why) => refused::<T>(false, why),
        }
    }
}

impl<'a, T: Element> IntoArg<'a> for &'a mut Array<T> {
    fn into_arg(self) -> Arg<'a> {
        match self.as_part_mut() {
            Ok(part) => part.into_arg(),
            Err(why) => refused::<T>(true, why),
        }
    }
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
        let most = u32::MAX as usize;
        let is_narrow = self.buffer.len() <= most && self.dims().iter().all(|dim| *dim <= most);
        if self.rank() != N || !is_narrow {
            return Err(refused());
        }
        Ok(Place {
            start: self.layout.offset as u32,
            dims: std::array::from_fn(|axis| self.dims()[axis] as u32),
            strides: std::array::from_fn(|axis| self.strides()[axis] as u32),
        })
    }
}
