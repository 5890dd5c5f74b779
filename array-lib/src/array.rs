//! Arrays, and what they share: a device and the kernels made for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dashmap::DashMap;
use kiln_jit_core::build::Kernel;
use kiln_jit_core::error::Error;
use kiln_jit_core::jit::Jit;
use kiln_jit_core::runtime::Buffer;

use crate::signature::{Signature, Words};
use crate::{ArrayError, Element, Expr, IntoExpr, Result, Shape};

/// Makes arrays on the device of one [`Jit`]. Cheap to clone.
///
/// ```
/// use kiln::prelude::*;
///
/// # fn main() -> kiln::Result<()> {
/// let arrays = Arrays::new(&Jit::new()?);
/// let x = arrays.vector(vec![1.0f32, 2.0, 3.0])?;
/// let m = arrays.matrix(vec![0.0f32, 10.0, 20.0, 30.0, 40.0, 50.0], 2, 3)?;
/// let y = (&m + &x).eval()?; // the row goes with each row
/// assert_eq!(y.to_vec()?, [1.0, 12.0, 23.0, 31.0, 42.0, 53.0]);
/// assert_eq!(arrays.launches(), 1);
/// arrays.jit().synchronize()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Arrays {
    shared: Arc<Shared>,
}

struct Shared {
    jit: Jit,
    /// Kernels by what they compute.
    kernels: DashMap<Words, Kernel>,
    launches: AtomicU64,
}

impl std::fmt::Debug for Arrays {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Arrays({:?})", self.shared.jit)
    }
}

impl Arrays {
    /// Arrays on the device of `jit`.
    pub fn new(jit: &Jit) -> Self {
        let (kernels, launches) = Default::default();
        Arrays {
            shared: Arc::new(Shared {
                jit: jit.clone(),
                kernels,
                launches,
            }),
        }
    }

    /// The `Jit` that compiles and launches.
    pub fn jit(&self) -> &Jit {
        &self.shared.jit
    }

    /// How many kernels array operations have launched.
    pub fn launches(&self) -> u64 {
        self.shared.launches.load(Ordering::Relaxed)
    }

    pub(crate) fn count_launch(&self) {
        self.shared.launches.fetch_add(1, Ordering::Relaxed);
    }

    /// The kernel with this signature, described by `build` if it is not there. `None` as the
    /// signature means that it has none: it is described each time, and the core's cache finds its
    /// code by content.
    pub(crate) fn kernel(
        &self,
        signature: Signature,
        build: impl FnOnce() -> Result<Kernel, Error>,
    ) -> Result<Kernel, Error> {
        let Some(signature) = signature.words() else {
            return build();
        };
        if let Some(kernel) = self.shared.kernels.get(&signature) {
            return Ok(kernel.clone());
        }
        let kernel = build()?;
        Ok(self
            .shared
            .kernels
            .entry(signature)
            .or_insert(kernel)
            .clone())
    }

    /// A vector with these elements.
    ///
    /// # Errors
    /// Out of device memory, or a device that has failed.
    pub fn vector<T: Element>(&self, values: Vec<T>) -> Result<Array<T>> {
        let shape = Shape::Vector(values.len());
        self.upload(&values, shape)
    }

    /// A matrix with these elements, row by row.
    ///
    /// # Errors
    /// Not `rows * columns` values, out of device memory, or a device that has failed.
    pub fn matrix<T: Element>(
        &self,
        values: Vec<T>,
        rows: usize,
        columns: usize,
    ) -> Result<Array<T>> {
        self.upload(&values, Shape::Matrix { rows, columns })
    }

    fn upload<T: Element>(&self, values: &[T], shape: Shape) -> Result<Array<T>> {
        if values.len() != shape.len() {
            return Err(ArrayError::Count {
                values: values.len(),
                shape,
            });
        }
        let buffer = self.jit().upload(values)?;
        Ok(self.of(buffer, shape))
    }

    /// An array of a buffer, whose elements are not copied: what kernels and graphs have written.
    ///
    /// ```
    /// use kiln::array::Shape;
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let jit = Jit::new()?;
    /// let arrays = Arrays::new(&jit);
    /// let written = jit.upload(&[1.0f32, 2.0, 3.0, 4.0])?;
    /// let m = arrays.adopt(written, Shape::Matrix { rows: 2, columns: 2 })?;
    /// let row = arrays.vector(vec![10.0, 20.0])?;
    /// let sum = (&m + &row).eval()?;
    /// let mut read = [0.0; 2];
    /// sum.buffer().read_into(2, &mut read)?; // and as an argument: `args!(sum.buffer())`
    /// assert_eq!(read, [13.0, 24.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A buffer of another number of elements, or of another device.
    pub fn adopt<T: Element>(&self, buffer: Buffer<T>, shape: Shape) -> Result<Array<T>> {
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

    pub(crate) fn of<T: Element>(&self, buffer: Buffer<T>, shape: Shape) -> Array<T> {
        Array {
            arrays: self.clone(),
            buffer: Arc::new(buffer),
            shape,
        }
    }
}

/// An array on a device. Cheap to clone; elements do not change.
///
/// ```
/// use kiln::prelude::*;
///
/// # fn main() -> kiln::Result<()> {
/// let arrays = Arrays::new(&Jit::new()?);
/// let x = arrays.matrix(vec![1, 2, 3, 4, 5, 6], 2, 3)?;
/// assert_eq!(x.shape().to_string(), "2x3");
/// assert_eq!((x.len(), x.is_empty()), (6, false));
/// let doubled = x.expr() + &x; // nothing is computed so far
/// assert_eq!(doubled.eval()?.to_vec()?, [2, 4, 6, 8, 10, 12]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Array<T: Element> {
    pub(crate) arrays: Arrays,
    pub(crate) buffer: Arc<Buffer<T>>,
    pub(crate) shape: Shape,
}

impl<T: Element> std::fmt::Debug for Array<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Array<{}>({})", std::any::type_name::<T>(), self.shape)
    }
}

impl<T: Element> Array<T> {
    /// The shape.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.shape.len()
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.shape.is_empty()
    }

    /// The buffer of the elements, row by row, which kernels and replays of graphs take as `array.buffer()`.
    pub fn buffer(&self) -> &Buffer<T> {
        &self.buffer
    }

    /// The elements, row by row.
    ///
    /// # Errors
    /// A fault of a kernel launched before, or a device that has failed.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        Ok(self.buffer.to_vec()?)
    }

    /// The array as an expression.
    pub fn expr(&self) -> Expr<T> {
        self.into_expr()
    }
}
