//! Elements by their numbers: gathered, counted, and those for which something is true.

use kiln_device_stdlib::index::Index;
use kiln_jit_core::args::IntoArg;
use kiln_jit_core::build::{Kernel, KernelBuilder, Val};
use kiln_jit_core::launch::grid_for;
use kiln_jit_core::value::DeviceType;

use crate::eval::BLOCK;
use crate::layout::axis_of;
use crate::scan::counted;
use crate::signature::{Signature, Word};
use crate::{Array, Arrays, Element, IntegerElement, Result, Shape};

/// What a fault says of an index that is not there; behind it stand both numbers.
const BEYOND: &str = "an index is beyond the array: the index, and how many there are";

/// Ends the thread unless an index is below the number of those that are there.
pub(crate) fn within<'k>(index: Val<'k>, count: Val<'k>) {
    let k = index.builder();
    k.if_(index.ge(count), || {
        // One of the two tells, whichever number is larger.
        k.assert_ne(index, count, BEYOND);
        k.assert_eq(index, count, BEYOND);
    });
}

impl Arrays {
    /// A kernel of this crate for elements of this type.
    pub(crate) fn named<T: Element>(
        &self,
        name: &'static str,
        describe: impl FnOnce(&KernelBuilder),
    ) -> Result<Kernel> {
        let signature = Signature::of(Word::Named(name, <T as DeviceType>::FORM.digest()));
        Ok(self.kernel(signature, || Kernel::build(name, describe))?)
    }

    fn gathering<T: Element>(&self) -> Result<Kernel> {
        self.named::<T>("take", |k| {
            let out = k.slice_mut("out", k.ty::<T>());
            let (x, from) = (k.slice("x", k.ty::<T>()), k.slice("from", k.ty::<u32>()));
            let (row, rows) = (
                k.param("row", k.ty::<u32>()),
                k.param("rows", k.ty::<u32>()),
            );
            let i = k.global_id().x();
            k.if_(i.lt(out.len()), || {
                let at = i / row;
                let index = from.at(at).get();
                // A product of a large one and `row` could be a place in the array.
                within(index, rows);
                out.at(i).set(x.at(index * row + (i - at * row)));
            });
        })
    }

    fn counting(&self) -> Result<Kernel> {
        self.named::<u32>("bincount", |k| {
            let (out, x) = (
                k.slice_mut("out", k.ty::<u32>()),
                k.slice("x", k.ty::<u32>()),
            );
            let i = k.global_id().x();
            k.if_(i.lt(x.len()), || {
                let bin = x.at(i).get();
                k.if_(bin.lt(out.len()), || {
                    out.at(bin).atomic_add(1u32);
                });
            });
        })
    }
}

impl<T: Element> Array<T> {
    /// The elements with these indices along a dimension, in the order of the indices (NumPy's `take`). An index that
    /// is not there is a fault of the kernel, which the next read tells.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.array(vec![1, 2, 3, 4, 5, 6], (3, 2))?;
    /// let from = arrays.vector(vec![2u32, 0, 2])?;
    /// assert_eq!(x.take(&from, 0)?.to_vec()?, [5, 6, 1, 2, 5, 6]);
    /// assert_eq!(x.t().take(&from, 1)?.to_vec()?, [5, 1, 5, 6, 2, 6]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A dimension that is not there, indices that are no vector; those of [`Expr::eval`](crate::Expr::eval).
    pub fn take(&self, indices: &Array<u32>, axis: isize) -> Result<Array<T>> {
        let axis = axis_of(axis, self.shape())?;
        self.counted("`take`", u32::MAX as usize)?;
        indices.vector("the indices of `take`", 0)?;
        let first = self.swap_axes(0, axis as isize)?.contiguous()?;
        let row: usize = first.dims()[1..].iter().product();
        let dims = std::iter::once(indices.len()).chain(first.dims()[1..].iter().copied());
        let shape = Shape::of(dims);
        counted(&shape, "`take`", u32::MAX as usize)?;
        let mut taken = self.arrays.unspecified(shape)?;
        if !taken.is_empty() {
            let (kernel, from) = (self.arrays.gathering::<T>()?, indices.contiguous()?);
            let len = taken.len();
            let args = [
                taken.owned()?.into_arg(),
                first.as_part()?.into_arg(),
                from.as_part()?.into_arg(),
                (row as u32).into_arg(),
                (first.dims()[0] as u32).into_arg(),
            ];
            self.arrays
                .jit()
                .launch(&kernel, grid_for(len, BLOCK), BLOCK, &args)?;
            self.arrays.count_launch();
        }
        taken.swap_axes(0, axis as isize)
    }

    /// The elements for which a mask of the same shape is true, in order, as a vector (NumPy's `x[mask]`). How many
    /// these are is read from the device.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.vector(vec![3.0f32, -1.0, 4.0, -1.0, 5.0])?;
    /// assert_eq!(x.compress(&x.gt(0.0).eval()?)?.to_vec()?, [3.0, 4.0, 5.0]);
    /// assert_eq!(x.lt(0.0).eval()?.nonzero()?.to_vec()?, [1, 3]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A mask of another shape; those of [`Expr::eval`](crate::Expr::eval).
    #[track_caller]
    pub fn compress(&self, mask: &Array<bool>) -> Result<Array<T>> {
        if mask.shape() != self.shape() {
            return Err(crate::ShapeMismatch {
                left: self.shape().clone(),
                right: mask.shape().clone(),
                at: Some(std::panic::Location::caller()),
            }
            .into());
        }
        self.counted("`compress`", crate::scan::MOST)?;
        let (x, mask) = (self.contiguous()?, mask.contiguous()?);
        let (x, mask) = (x.as_part()?, mask.as_part()?);
        let (kept, count) = crate::scan::select_of(self.arrays.jit(), x, mask)?;
        if !self.is_empty() {
            self.arrays.count_launch();
        }
        let (all, kept) = (kept.len(), self.arrays.of(kept, Shape::new(count)));
        // Of few elements a copy is made, so that no memory is held for all; that costs less than it saves.
        match count < all / 4 {
            true => kept.copy(),
            false => Ok(kept),
        }
    }

    /// The elements for which a mask of the same shape is true, and the others, each in order, as vectors (Rust's
    /// `partition`).
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.vector(vec![3.0f32, -1.0, 4.0, -1.5])?;
    /// let (positive, others) = x.partition(&x.gt(0.0).eval()?)?;
    /// assert_eq!((positive.to_vec()?, others.to_vec()?), (vec![3.0, 4.0], vec![-1.0, -1.5]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Array::compress`].
    #[track_caller]
    pub fn partition(&self, mask: &Array<bool>) -> Result<(Array<T>, Array<T>)> {
        let kept = self.compress(mask)?;
        let others = self.compress(&(!mask).eval()?)?;
        Ok((kept, others))
    }
}

impl Array<bool> {
    /// The numbers of the elements that are true, the last dimension fastest. [`Array::compress`] has an example.
    ///
    /// # Errors
    /// As [`Array::compress`].
    #[track_caller]
    pub fn nonzero(&self) -> Result<Array<u32>> {
        self.arrays.indices(self.shape()).eval()?.compress(self)
    }
}

impl<T: IntegerElement> Array<T> {
    /// How often each number below `bins` is among the elements; others are not counted (NumPy's `bincount`).
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.vector(vec![0.1f32, 0.4, 0.45, 0.9])?;
    /// let histogram = (&x * 4.0).cast::<u32>().eval()?.bincount(4)?;
    /// assert_eq!(histogram.to_vec()?, [1, 2, 0, 1]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Expr::eval`](crate::Expr::eval).
    pub fn bincount(&self, bins: usize) -> Result<Array<u32>> {
        self.counted("`bincount`", u32::MAX as usize)?;
        let mut counts = self.arrays.zeros(bins)?;
        // A number that has no `u32` is beyond all bins.
        let numbers = crate::where_(
            self.lt(T::ZERO),
            u32::MAX,
            self.cast::<u64>()
                .minimum(u64::from(u32::MAX))
                .cast::<u32>(),
        );
        let numbers = numbers.eval()?;
        if !self.is_empty() && bins > 0 {
            let kernel = self.arrays.counting()?;
            let args = [counts.owned()?.into_arg(), numbers.as_part()?.into_arg()];
            self.arrays
                .jit()
                .launch(&kernel, grid_for(self.len(), BLOCK), BLOCK, &args)?;
            self.arrays.count_launch();
        }
        Ok(counts)
    }
}
