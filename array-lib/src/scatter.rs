//! Elements that are written where indices name them: one value for each index, or all of them folded by an atomic.
//!
//! Threads write values, each its own. Where several indices name one element, a table as long as the dimension first
//! learns which of them is the last, so that one thread writes it: nothing depends on the order of threads.

use std::ops::Range;
use std::sync::Arc;

use half::{bf16, f16};
use kiln_device_stdlib::index::Index;
use kiln_jit_core::args::{Arg, IntoArg};
use kiln_jit_core::build::{Kernel, KernelBuilder, Place, Val};
use kiln_jit_core::ir::{AtomicOp, Ordering, Scope, Type};
use kiln_jit_core::launch::grid_for;

use crate::eval::BLOCK;
use crate::expr::Node;
use crate::indexed::within;
use crate::input::Input;
use crate::layout::axis_of;
use crate::scan::{MOST, counted};
use crate::{Array, Arrays, Element, Expr, IntoExpr, NumberElement, Result, Shape};

/// A number that a kernel changes in one step whatever other threads do, as [`Array::scatter_add`] needs it. rustc
/// refuses other elements.
#[diagnostic::on_unimplemented(
    message = "kernels do not change a `{Self}` in one step",
    label = "numbers are folded where they are",
    note = "convert the elements before: `x.cast::<u32>().eval()?`"
)]
pub trait AtomicElement: NumberElement {}

macro_rules! atomic {
    ($($number:ident)*) => {$(
        impl AtomicElement for $number {}
    )*};
}
atomic! { i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 }

/// What the thread of a value knows: where that goes, as an index that may not be there, and its own number among the
/// indices.
struct Written<'k> {
    out: Val<'k>,
    value: Val<'k>,
    number: Val<'k>,
    index: Val<'k>,
    along: Val<'k>,
    place: Val<'k>,
}

impl<'k> Written<'k> {
    /// The element; only where the index is there.
    fn element(&self) -> Place<'k> {
        self.out.at(self.place)
    }
}

/// Describes what each value's thread does. The elements have three dimensions, of which the second is indexed, and so
/// have the values.
fn describe<'k>(k: &'k KernelBuilder, ty: Type, write: impl FnOnce(&Written<'k>)) {
    let (out, values) = (k.slice_mut("out", ty), k.slice("values", ty));
    let from = k.slice("from", Type::U32);
    let (inner, along) = (k.param("inner", Type::U32), k.param("along", Type::U32));
    let (i, count) = (k.global_id().x(), from.len());
    k.if_(i.lt(values.len()), || {
        // Of a vector nothing is divided.
        let line = k.var("line", i);
        k.if_(inner.gt(1u32), || line.set(i / inner));
        let outer = k.var("outer", k.lit(Type::U32, 0));
        k.if_(values.len().gt(count * inner), || {
            outer.set(line.get() / count);
        });
        let number = line.get() - outer.get() * count;
        let index = from.at(number).get();
        write(&Written {
            out,
            value: values.at(i).get(),
            number,
            index,
            along,
            place: (outer.get() * along + index) * inner + (i - line.get() * inner),
        });
    });
}

impl Arrays {
    /// The kernel that writes values of which each has a place of its own.
    fn scattering<T: Element>(&self) -> Result<Kernel> {
        self.named::<T>("scatter", |k| {
            let last = k.slice("last", Type::U32);
            describe(k, k.ty::<T>(), |written| {
                // Here, as whoever reads the elements is told what went wrong in kernels that write them.
                within(written.index, written.along);
                let last = last.at(written.index).get();
                k.if_(last.eq(written.number + 1u32), || {
                    written.element().set(written.value);
                });
            });
        })
    }

    /// The kernel that notes for each index the last of those that are it, counted from 1.
    fn finding_last(&self) -> Result<Kernel> {
        self.named::<u32>("scatter_last", |k| {
            let (last, from) = (k.slice_mut("last", Type::U32), k.slice("from", Type::U32));
            let i = k.global_id().x();
            k.if_(i.lt(from.len()), || {
                let index = from.at(i).get();
                k.if_(index.lt(last.len()), || {
                    last.at(index).atomic_max(i + 1u32);
                });
            });
        })
    }

    /// The kernel that folds values into elements.
    fn folding<T: Element>(&self, name: &'static str, op: AtomicOp) -> Result<Kernel> {
        self.named::<T>(name, |k| {
            describe(k, k.ty::<T>(), |written| {
                within(written.index, written.along);
                let element = written.element();
                element.atomic(op, written.value, Ordering::Relaxed, Scope::Device);
            });
        })
    }
}

/// Values, one after the other: as they are in a buffer, or as they were stored for this.
enum Values<T: Element> {
    Given(Arc<dyn Input>, Range<usize>),
    Stored(Array<T>),
}

impl<T: Element> Values<T> {
    #[track_caller]
    fn of(arrays: &Arrays, values: Expr<T>, shape: &Shape) -> Result<Values<T>> {
        if let Node::Read { buffer, layout } = &*values.node
            && values.arrays.is_some()
            && layout.shape == *shape
            && layout.is_dense()
        {
            let start = if layout.len() > 0 { layout.offset } else { 0 };
            let range = start..start + layout.len();
            return Ok(Values::Given(buffer.clone(), range));
        }
        let mut stored = arrays.unspecified(shape)?;
        stored.assign(values)?;
        Ok(Values::Stored(stored))
    }

    fn arg(&self) -> Result<Arg<'_>> {
        Ok(match self {
            Values::Given(buffer, range) => buffer.part(range.clone())?,
            Values::Stored(values) => values.as_part()?.into_arg(),
        })
    }
}

/// Values on their way to elements that indices name.
struct Scatter<T: Element> {
    values: Values<T>,
    count: usize,
    from: Array<u32>,
    along: usize,
    inner: usize,
}

impl<T: Element> Scatter<T> {
    #[track_caller]
    fn of(
        x: &Array<T>,
        (indices, axis): (&Array<u32>, isize),
        values: impl IntoExpr<T>,
    ) -> Result<Scatter<T>> {
        let axis = axis_of(axis, x.shape())?;
        x.counted("a scatter", MOST)?;
        indices.vector("the indices of a scatter", 0)?;
        let dims = x.dims().iter().enumerate();
        let count = indices.len();
        let shape = Shape::of(dims.map(|(at, dim)| if at == axis { count } else { *dim }));
        counted(&shape, "a scatter", MOST)?;
        Ok(Scatter {
            values: Values::of(&x.arrays, values.into_expr(), &shape)?,
            count: shape.len(),
            from: indices.contiguous()?,
            along: x.dims()[axis],
            inner: x.dims()[axis + 1..].iter().product(),
        })
    }

    /// Launches a kernel for all values, which may take the table of the last ones, too.
    fn launch(&self, x: &mut Array<T>, kernel: &Kernel, last: Option<Arg<'_>>) -> Result<()> {
        let arrays = x.arrays.clone();
        let mut args = Vec::from_iter(last);
        args.extend([x.as_part_mut()?.into_arg(), self.values.arg()?]);
        args.push(self.from.as_part()?.into_arg());
        args.extend([self.inner as u32, self.along as u32].map(IntoArg::into_arg));
        let blocks = grid_for(self.count, BLOCK);
        arrays.jit().launch(kernel, blocks, BLOCK, &args)?;
        arrays.count_launch();
        Ok(())
    }

    fn fold(&self, x: &mut Array<T>, (name, op): (&'static str, AtomicOp)) -> Result<()> {
        if self.count == 0 {
            return Ok(());
        }
        let kernel = x.arrays.folding::<T>(name, op)?;
        self.launch(x, &kernel, None)
    }
}

impl<T: Element> Array<T> {
    /// Writes values to the elements with these indices along a dimension, in the order of the indices, which
    /// [`Array::take`] reads (NumPy's `x[indices] = values`). Values are of the shape that `take` gives, or go with it. Of
    /// several values for one element the last one stays, on every device. An index that is not there is a fault of the
    /// kernel, which the next read tells; other values are written.
    ///
    /// What was cloned of the array before, and views of it, stay as they are; if there are some, it is copied. The
    /// values' threads need no order: a table of as many numbers as the dimension has elements says which value is the
    /// last.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let mut x = arrays.zeros::<i32>((3, 2))?;
    /// let to = arrays.vector(vec![2u32, 0, 2])?;
    /// x.scatter(&to, 0, &arrays.nested([[1, 2], [3, 4], [5, 6]])?)?;
    /// assert_eq!(x.to_vec()?, [3, 4, 0, 0, 5, 6]);
    /// x.scatter(&arrays.vector(vec![1u32])?, 1, 9)?; // a column
    /// assert_eq!(x.to_vec()?, [3, 9, 0, 9, 5, 9]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A dimension that is not there, indices that are no vector, values of a shape that does not go with them; those of
    /// [`Expr::eval`].
    #[track_caller]
    pub fn scatter(
        &mut self,
        indices: &Array<u32>,
        axis: isize,
        values: impl IntoExpr<T>,
    ) -> Result<()> {
        let scatter = Scatter::of(self, (indices, axis), values)?;
        if scatter.count == 0 {
            return Ok(());
        }
        let arrays = self.arrays.clone();
        let mut last = arrays.jit().zeros::<u32>(scatter.along)?;
        let find = arrays.finding_last()?;
        let args = [(&mut last).into_arg(), scatter.from.as_part()?.into_arg()];
        let blocks = grid_for(scatter.from.len(), BLOCK);
        arrays.jit().launch(&find, blocks, BLOCK, &args)?;
        drop(args);
        arrays.count_launch();
        let write = arrays.scattering::<T>()?;
        scatter.launch(self, &write, Some((&last).into_arg()))
    }
}

/// Methods that fold values into elements, each with its kernel's name and its atomic.
macro_rules! folds {
    ($($(#[$doc:meta])* $name:ident $op:ident;)*) => {
        impl<T: AtomicElement> Array<T> {$(
            $(#[$doc])*
            #[track_caller]
            pub fn $name(
                &mut self,
                indices: &Array<u32>,
                axis: isize,
                values: impl IntoExpr<T>,
            ) -> Result<()> {
                let op = (stringify!($name), AtomicOp::$op);
                Scatter::of(self, (indices, axis), values)?.fold(self, op)
            }
        )*}
    };
}
folds! {
    /// Adds values to the elements with these indices along a dimension, each as often as it is named (NumPy's
    /// `np.add.at(x, indices, values)`); otherwise as [`Array::scatter`]. Integers wrap around. Of floats the order of
    /// additions to one element is not specified, and may differ from run to run: for the same bits each time
    /// [sort by the indices](Array::sort_by_key), and [add up the segments](Array::reduce_segments).
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let mut x = arrays.vector(vec![10.0f32, 20.0, 30.0])?;
    /// let to = arrays.vector(vec![2u32, 0, 2, 2])?;
    /// x.scatter_add(&to, 0, &arrays.vector(vec![1.0, 2.0, 3.0, 4.0])?)?;
    /// assert_eq!(x.to_vec()?, [12.0, 20.0, 38.0]);
    /// x.scatter_max(&to, 0, 15.0)?;
    /// assert_eq!(x.to_vec()?, [15.0, 20.0, 38.0]);
    /// x.scatter_min(&to, 0, 16.0)?;
    /// assert_eq!(x.to_vec()?, [15.0, 20.0, 16.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Array::scatter`].
    scatter_add Add;
    /// Makes the elements with these indices along a dimension no greater than the values for them (NumPy's
    /// `np.minimum.at`). Of a number and NaN the number stays, as [`Array::fmin`] has it. [`Array::scatter_add`] has an
    /// example.
    ///
    /// # Errors
    /// As [`Array::scatter`].
    scatter_min Min;
    /// Makes the elements with these indices along a dimension no less than the values for them (NumPy's
    /// `np.maximum.at`). Of a number and NaN the number stays, as [`Array::fmax`] has it. [`Array::scatter_add`] has an
    /// example.
    ///
    /// # Errors
    /// As [`Array::scatter`].
    scatter_max Max;
}
