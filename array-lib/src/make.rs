//! Arrays that are made: of values of the host, of a rule, of a buffer.

use std::panic::Location;

use kiln_jit_core::build::Val;
use kiln_jit_core::runtime::Buffer;

use crate::expr::{Node, Unfit};
use crate::function::FunctionName;
use crate::layout::{Layout, axis_of};
use crate::{
    Array, ArrayError, Arrays, Element, ElementFn, Expr, FloatElement, IntoShape, NumberElement,
    Result, Shape, broadcast,
};

impl Arrays {
    /// A vector with these elements.
    ///
    /// # Errors
    /// Out of device memory, or a device that has failed.
    pub fn vector<T: Element>(&self, values: Vec<T>) -> Result<Array<T>> {
        self.upload(&values, Shape::new(values.len()))
    }

    /// A matrix with these elements, row by row.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let m = arrays.matrix(vec![1, 2, 3, 4, 5, 6], 2, 3)?;
    /// assert_eq!(m.get([1, 0])?, 4);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Not `rows * columns` values, out of device memory, or a device that has failed.
    pub fn matrix<T: Element>(
        &self,
        values: Vec<T>,
        rows: usize,
        columns: usize,
    ) -> Result<Array<T>> {
        self.upload(&values, Shape::new((rows, columns)))
    }

    /// An array of this shape with these elements, the last dimension fastest.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.array([1, 2, 3, 4, 5, 6, 7, 8], (2, 2, 2))?;
    /// assert_eq!(x.get([1, 0, 1])?, 6);
    /// let one = arrays.array([2.5f32], ())?; // no dimension, one element
    /// assert_eq!((one.rank(), one.item()?), (0, 2.5));
    /// let rows = arrays.nested([[1.0f64, 2.0], [3.0, 4.0], [5.0, 6.0]])?;
    /// assert_eq!(rows.shape().to_string(), "3x2");
    /// let counted = arrays.from_iter((0..4).map(|i| i * i))?;
    /// assert_eq!(counted.to_vec()?, [0, 1, 4, 9]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Another number of values than the shape has, out of device memory, or a device that has failed.
    pub fn array<T: Element>(
        &self,
        values: impl AsRef<[T]>,
        shape: impl IntoShape,
    ) -> Result<Array<T>> {
        self.upload(values.as_ref(), shape.into_shape())
    }

    /// A vector of what an iterator gives.
    ///
    /// # Errors
    /// As [`Arrays::vector`].
    pub fn from_iter<T: Element>(&self, values: impl IntoIterator<Item = T>) -> Result<Array<T>> {
        self.vector(values.into_iter().collect())
    }

    /// A matrix of rows that are arrays of the host. [`Arrays::array`] has an example.
    ///
    /// # Errors
    /// As [`Arrays::matrix`].
    pub fn nested<T: Element, const ROWS: usize, const COLUMNS: usize>(
        &self,
        rows: [[T; COLUMNS]; ROWS],
    ) -> Result<Array<T>> {
        self.matrix(rows.concat(), ROWS, COLUMNS)
    }

    fn upload<T: Element>(&self, values: &[T], shape: Shape) -> Result<Array<T>> {
        if values.len() != shape.len() {
            let values = values.len();
            return Err(ArrayError::Count { values, shape });
        }
        let buffer = self.jit().upload(values)?;
        Ok(self.of(buffer, shape))
    }

    /// An array of a buffer, whose elements are not copied: what kernels and graphs have written.
    /// [`Array::into_buffer`] gives it back.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let jit = Jit::new()?;
    /// let arrays = Arrays::new(&jit);
    /// let written = jit.upload(&[1.0f32, 2.0, 3.0, 4.0])?;
    /// let m = arrays.adopt(written, (2, 2))?;
    /// let row = arrays.vector(vec![10.0, 20.0])?;
    /// let sum = (&m + &row).eval()?;
    /// let buffer: Buffer<f32> = sum.into_buffer()?;
    /// assert_eq!(buffer.to_vec()?, [11.0, 22.0, 13.0, 24.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A buffer of another number of elements, or of another device.
    pub fn adopt<T: Element>(&self, buffer: Buffer<T>, shape: impl IntoShape) -> Result<Array<T>> {
        let shape = shape.into_shape();
        let (owner, device) = (buffer.device_id(), self.jit().device().info().id);
        if owner != device {
            return Err(ArrayError::Foreign { owner, device });
        }
        match buffer.len() == shape.len() {
            true => Ok(self.of(buffer, shape)),
            false => Err(ArrayError::Count {
                values: buffer.len(),
                shape,
            }),
        }
    }

    /// An array of zeros.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// assert_eq!(arrays.zeros::<f32>((2, 2))?.to_vec()?, [0.0; 4]);
    /// assert_eq!(arrays.ones::<u8>(3)?.to_vec()?, [1; 3]);
    /// assert_eq!(arrays.full(3, 7.5f64)?.to_vec()?, [7.5; 3]);
    /// assert_eq!(arrays.arange(1, 10, 4)?.to_vec()?, [1, 5, 9]);
    /// assert_eq!(arrays.linspace(0.0f32, 1.0, 5)?.to_vec()?, [0.0, 0.25, 0.5, 0.75, 1.0]);
    /// assert_eq!(arrays.eye::<i32>(2)?.to_vec()?, [1, 0, 0, 1]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Out of device memory, or a device that has failed.
    pub fn zeros<T: Element>(&self, shape: impl IntoShape) -> Result<Array<T>> {
        let shape = shape.into_shape();
        Ok(self.of(self.jit().zeros(shape.len())?, shape))
    }

    /// An array of ones.
    ///
    /// # Errors
    /// As [`Arrays::zeros`].
    pub fn ones<T: NumberElement>(&self, shape: impl IntoShape) -> Result<Array<T>> {
        self.full(shape, T::ONE)
    }

    /// An array whose elements are all this.
    ///
    /// # Errors
    /// As [`Arrays::zeros`].
    pub fn full<T: Element>(&self, shape: impl IntoShape, value: T) -> Result<Array<T>> {
        let shape = shape.into_shape();
        let mut buffer = self.jit().zeros(shape.len())?;
        buffer.fill(value)?;
        Ok(self.of(buffer, shape))
    }

    /// The numbers from `start` up to `end`, each `step` more than the one before (NumPy's `arange`, but the step is
    /// said). They are computed on the device.
    ///
    /// # Errors
    /// As [`Expr::eval`].
    #[track_caller]
    pub fn arange<T: NumberElement>(&self, start: T, end: T, step: T) -> Result<Array<T>> {
        let (first, last, by) = (start.to_f64(), end.to_f64(), step.to_f64());
        let count = ((last - first) / by).ceil();
        let count = if count > 0.0 { count as usize } else { 0 };
        (self.indices(count).cast::<T>() * step + start).eval()
    }

    /// As many numbers as are asked for, from `start` to `end`, both of which are among them, in equal steps.
    ///
    /// # Errors
    /// As [`Expr::eval`].
    #[track_caller]
    pub fn linspace<T: FloatElement>(&self, start: T, end: T, count: usize) -> Result<Array<T>> {
        let last = count.saturating_sub(1) as u32;
        let operation = ElementFn::operation("linspace", |[i, last, start, end]: [Val<'_>; 4]| {
            let part = i.cast(start.ty()) / last.max(1u32).cast(start.ty());
            let is_last = i.eq(last) & i.ne(0);
            is_last.select(end, start + (end - start) * part)
        });
        broadcast::<(u32, u32, T, T), T>((self.indices(count), last, start, end), operation).eval()
    }

    /// A square matrix with ones where the indices are equal, and zeros elsewhere.
    ///
    /// # Errors
    /// As [`Expr::eval`].
    #[track_caller]
    pub fn eye<T: NumberElement>(&self, size: usize) -> Result<Array<T>> {
        let (row, column) = (
            self.coordinates((size, size), 0),
            self.coordinates((size, size), 1),
        );
        row.eq(column).cast::<T>().eval()
    }

    /// An array whose elements are what a function gives for their indices.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.from_fn([2, 3], device!(|at: [u32; 2]| 10 * at[0] + at[1]))?;
    /// assert_eq!(x.to_vec()?, [0, 1, 2, 10, 11, 12]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Expr::eval`].
    #[track_caller]
    pub fn from_fn<T: Element, const N: usize>(
        &self,
        shape: [usize; N],
        f: ElementFn<([u32; N],), T>,
    ) -> Result<Array<T>> {
        let place = Location::caller();
        let along = |axis: usize| self.coordinates_at(shape, axis as isize, place);
        if N == 0 {
            let shape = shape.to_vec();
            return Err(ArrayError::Order {
                order: shape,
                shape: Shape::default(),
            });
        }
        let mut indices: Expr<[u32; N]> = Expr::applied(
            (0..N).map(|axis| along(axis).node).collect(),
            Some(FunctionName::Operation(format!("indices {N}").into())),
            indices_together,
        );
        indices.arrays = Some(self.clone());
        indices.shape = along(0).shape;
        indices.map(f).eval()
    }

    /// The numbers of an array's elements, the last dimension fastest: an expression, which is computed where it is used.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.array(vec![5.0f32, 7.0, 9.0, 8.0], (2, 2))?;
    /// let weighted = (&x * arrays.indices((2, 2)).cast::<f32>()).sum()?;
    /// assert_eq!(weighted, 7.0 + 18.0 + 24.0);
    /// let (row, column) = (arrays.coordinates((2, 2), 0), arrays.coordinates((2, 2), 1));
    /// assert_eq!(row.gt(column).eval()?.to_vec()?, [false, false, true, false]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn indices(&self, shape: impl IntoShape) -> Expr<u32> {
        self.place(Layout::dense(shape.into_shape()), Location::caller())
    }

    /// The index of each element along a dimension; [`Arrays::indices`] has an example. It is an error of what is
    /// computed if there is no such dimension.
    #[track_caller]
    pub fn coordinates(&self, shape: impl IntoShape, axis: isize) -> Expr<u32> {
        self.coordinates_at(shape, axis, Location::caller())
    }

    fn coordinates_at(
        &self,
        shape: impl IntoShape,
        axis: isize,
        place: &'static Location<'static>,
    ) -> Expr<u32> {
        let mut layout = Layout::dense(shape.into_shape());
        match axis_of(axis, &layout.shape) {
            Ok(axis) => {
                let along = |(at, stride): (usize, &mut isize)| *stride = isize::from(at == axis);
                layout.strides.iter_mut().enumerate().for_each(along);
                self.place(layout, place)
            }
            Err(_) => {
                let unfit = Unfit::Axis(axis, layout.shape.clone()).at(place);
                Expr::new(Node::Place(layout), 1, Some(self.clone()), Err(unfit))
            }
        }
    }

    fn place(&self, layout: Layout, place: &'static Location<'static>) -> Expr<u32> {
        let shape = match layout.len() <= u32::MAX as usize {
            true => Ok(layout.shape.clone()),
            false => Err(Unfit::ManyIndices(layout.shape.clone()).at(place)),
        };
        Expr::new(Node::Place(layout), 1, Some(self.clone()), shape)
    }
}

/// The indices along all dimensions as one array.
fn indices_together<'k>(args: &[Val<'k>]) -> Val<'k> {
    // There is at least one: without dimensions nothing is described.
    let k = args[0].builder();
    k.construct(k.array(args[0].ty(), args.len() as u64), args)
}

impl<T: Element> Expr<T> {
    /// Applies a function to every element and its number, the last dimension fastest.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.vector(vec![5.0f32, 7.0, 9.0])?;
    /// let y = x.map_indexed(device!(|i: u32, v| if i % 2 == 0 { v } else { -v }));
    /// assert_eq!(y.eval()?.to_vec()?, [5.0, -7.0, 9.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn map_indexed<U: Element>(self, f: ElementFn<(u32, T), U>) -> Expr<U> {
        let layout = Layout::dense(self.shape.clone().unwrap_or_default());
        let indices: Expr<u32> = Expr::new(
            Node::Place(layout),
            1,
            self.arrays.clone(),
            self.shape.clone(),
        );
        broadcast((indices, self), f)
    }
}

impl<T: Element> Array<T> {
    /// Applies a function to every element and its number; see [`Expr::map_indexed`].
    pub fn map_indexed<U: Element>(&self, f: ElementFn<(u32, T), U>) -> Expr<U> {
        self.expr().map_indexed(f)
    }
}
