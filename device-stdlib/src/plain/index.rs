//! Thread, block and grid indices (CUDA guide, "Built-in Variables"). All are `usize`, which has 32
//! bits in kernels. Their table is in [`crate::index`]; what they are on the host has fields, so it is here.
//!
//! A grid-stride loop is right for a grid of any size:
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn square(x: &mut [f32]) {
//!     for i in grid_stride(x.len()) {
//!         x[i] *= x[i];
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let mut x = jit.upload(&[3.0; 1000])?;
//! square.launch(&jit, (2, 64), &mut x)?;
//! assert_eq!(x.to_vec()?, [9.0; 1000]);
//! # Ok(())
//! # }
//! ```
//!
//! An element of a matrix for each thread of a grid with two dimensions:
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn transpose(x: &[f32], out: &mut [f32], rows: u32, columns: u32) {
//!     let (row, column) = (global_id().y, global_id().x);
//!     let (rows, columns) = (rows as usize, columns as usize);
//!     if row < rows && column < columns {
//!         out[column * rows + row] = x[row * columns + column];
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let x = jit.upload(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
//! let mut out = jit.zeros(6)?;
//! transpose.launch(&jit, (1, (16, 16)), &x, &mut out, 2, 3)?;
//! assert_eq!(out.to_vec()?, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
//! # Ok(())
//! # }
//! ```

use std::cmp::Ordering;
use std::convert::Infallible;
use std::ops::{Add, Div, Mul, Rem, Sub};

use kiln_jit_core::ir::{Constant, TypeForm};
use kiln_jit_core::value::DeviceType;

pub use crate::index::functions::*;

use super::functions;
use crate::index::Index as _;

functions! {
    /// The indices below `len` that are the thread's in a grid-stride loop (NVIDIA, "CUDA Pro Tip: Write Flexible
    /// Kernels with Grid-Stride Loops"): its own number, and on in steps of all threads, in x. A `for` goes over it, as
    /// over `(global_id().x..len).step_by(global_size().x)`, and nothing else does. On the host, where there is one
    /// thread, it is all of them.
    fn grid_stride(len: usize) -> GridStride {
        GridStride(len)
    } => |front, _, [len]| {
        let k = front.builder();
        front.steps(k.global_id().x(), *len, k.global_size().x())
    };
}

/// The indices that [`grid_stride`] gives a thread.
#[derive(Copy, Clone, Debug)]
pub struct GridStride(usize);

impl IntoIterator for GridStride {
    type Item = usize;
    type IntoIter = std::ops::Range<usize>;
    fn into_iter(self) -> Self::IntoIter {
        0..self.0
    }
}

/// An index or an extent in three dimensions, x the fastest.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Index3 {
    /// The fastest dimension.
    pub x: usize,
    /// The middle dimension.
    pub y: usize,
    /// The slowest dimension.
    pub z: usize,
}

/// An index or an extent in three dimensions of 64 bits, x the fastest.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct WideIndex3 {
    /// The fastest dimension.
    pub x: u64,
    /// The middle dimension.
    pub y: u64,
    /// The slowest dimension.
    pub z: u64,
}

impl WideIndex3 {
    pub(crate) const ORIGIN: WideIndex3 = WideIndex3 { x: 0, y: 0, z: 0 };
    pub(crate) const ONE: WideIndex3 = WideIndex3 { x: 1, y: 1, z: 1 };
}

/// Numbers that an [`Index3`] can be compared with and calculated with: none, so that rustc says what to write.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "an index has three dimensions, and is no number",
    label = "write `.x`, `.y` or `.z` after the index, `global_id().x`"
)]
pub trait OneDimension {}

#[diagnostic::do_not_recommend]
impl OneDimension for Infallible {}

impl<T: OneDimension> PartialEq<T> for Index3 {
    fn eq(&self, _: &T) -> bool {
        false
    }
}

impl<T: OneDimension> PartialOrd<T> for Index3 {
    fn partial_cmp(&self, _: &T) -> Option<Ordering> {
        None
    }
}

macro_rules! no_numbers {
    ($($operation:ident: $method:ident,)*) => {$(
        impl<T: OneDimension> $operation<T> for Index3 {
            type Output = usize;
            fn $method(self, _: T) -> usize {
                self.x
            }
        }
    )*};
}
no_numbers! { Add: add, Sub: sub, Mul: mul, Div: div, Rem: rem, }

impl Index3 {
    pub(crate) const ORIGIN: Index3 = Index3 { x: 0, y: 0, z: 0 };
    pub(crate) const ONE: Index3 = Index3 { x: 1, y: 1, z: 1 };
}

macro_rules! device_types {
    ($($index:ident: $number:ty, $name:literal;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl DeviceType for $index {
            const FORM: &'static TypeForm = &TypeForm::structure(
                $name,
                &[("x", <$number>::FORM), ("y", <$number>::FORM), ("z", <$number>::FORM)],
            );
            fn scalars(&self, out: &mut Vec<Constant>) {
                [self.x, self.y, self.z].scalars(out);
            }
        }
    )*};
}
device_types! { Index3: usize, "Index3"; WideIndex3: u64, "WideIndex3"; }
