//! Arrays, and what they share: a device and the kernels made for it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use dashmap::DashMap;
use kiln_jit_core::build::Kernel;
use kiln_jit_core::error::Error;
use kiln_jit_core::jit::Jit;
use kiln_jit_core::runtime::Buffer;
use parking_lot::Mutex;
use rustc_hash::FxBuildHasher;

use crate::layout::Layout;
use crate::reduce::counters::Counters;
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
/// assert_eq!((arrays.launches(), arrays.kernels()), (1, 1));
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
    made: Arc<Made>,
}

/// What arrays in all streams of a device have made.
#[derive(Default)]
struct Made {
    /// Kernels by what they compute.
    kernels: DashMap<Words, Known, FxBuildHasher>,
    launches: AtomicU64,
    /// What launches count by, a list for each that is made at the same time as others.
    counters: Mutex<Vec<Counters>>,
}

/// A kernel, and what is found of it when it is first launched.
#[derive(Clone)]
pub(crate) struct Known {
    pub(crate) kernel: Kernel,
    /// How many blocks a multiprocessor holds at once of those that it is launched with.
    pub(crate) blocks: Arc<OnceLock<u32>>,
}

impl Known {
    fn of(kernel: Kernel) -> Known {
        let blocks = Arc::default();
        Known { kernel, blocks }
    }
}

impl std::fmt::Debug for Arrays {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Arrays({:?})", self.shared.jit)
    }
}

impl Arrays {
    /// Arrays on the device of `jit`.
    pub fn new(jit: &Jit) -> Self {
        Arrays {
            shared: Arc::new(Shared {
                jit: jit.clone(),
                made: Arc::default(),
            }),
        }
    }

    /// Arrays of another `Jit` of the device that have these kernels.
    pub(crate) fn sharing(&self, jit: &Jit) -> Arrays {
        Arrays {
            shared: Arc::new(Shared {
                jit: jit.clone(),
                made: self.shared.made.clone(),
            }),
        }
    }

    /// The `Jit` that compiles and launches.
    pub fn jit(&self) -> &Jit {
        &self.shared.jit
    }

    /// How many kernels array operations have launched.
    pub fn launches(&self) -> u64 {
        self.shared.made.launches.load(Ordering::Relaxed)
    }

    /// How many different kernels array operations have made that are kept by what they compute. Those of an
    /// [`ElementFn::build`](crate::ElementFn::build) that captures something are not.
    pub fn kernels(&self) -> usize {
        self.shared.made.kernels.len()
    }

    /// Whether these are the same: of one `Jit`, in one stream.
    pub(crate) fn is(&self, other: &Arrays) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    pub(crate) fn counters(&self) -> &Mutex<Vec<Counters>> {
        &self.shared.made.counters
    }

    pub(crate) fn count_launch(&self) {
        self.shared.made.launches.fetch_add(1, Ordering::Relaxed);
    }

    /// The kernel with this signature, described by `build` if it is not there. `None` as the
    /// signature means that it has none: it is described each time, and the core's cache finds its
    /// code by content.
    pub(crate) fn kernel(
        &self,
        signature: Signature,
        build: impl FnOnce() -> Result<Kernel, Error>,
    ) -> Result<Kernel, Error> {
        Ok(self.known(signature, build)?.kernel)
    }

    /// The kernel with this signature, as [`Arrays::kernel`], with what is known of it.
    pub(crate) fn known(
        &self,
        signature: Signature,
        build: impl FnOnce() -> Result<Kernel, Error>,
    ) -> Result<Known, Error> {
        let Some(signature) = signature.words() else {
            return Ok(Known::of(build()?));
        };
        let kernels = &self.shared.made.kernels;
        if let Some(known) = kernels.get(&signature) {
            return Ok(known.clone());
        }
        let kernel = build()?;
        let known = kernels
            .entry(signature)
            .or_insert_with(|| Known::of(kernel));
        Ok(known.clone())
    }

    /// An array of a buffer, whose elements lie one after the other.
    pub(crate) fn of<T: Element>(&self, buffer: Buffer<T>, shape: Shape) -> Array<T> {
        Array {
            arrays: self.clone(),
            buffer: Arc::new(buffer),
            layout: Layout::dense(shape),
        }
    }
}

/// An array on a device: of any number of dimensions, or a view of some elements of another. Cheap to clone, as a view
/// is to make: they share a buffer. Each is a value of its own: what is [assigned](Array::assign) to one of them is not
/// seen in the others.
///
/// ```
/// use kiln::prelude::*;
///
/// # fn main() -> kiln::Result<()> {
/// let arrays = Arrays::new(&Jit::new()?);
/// let x = arrays.array(vec![1, 2, 3, 4, 5, 6], (2, 3))?;
/// assert_eq!(x.shape().to_string(), "2x3");
/// assert_eq!((x.len(), x.rank(), x.is_empty()), (6, 2, false));
/// let doubled = x.expr() + &x; // nothing is computed so far
/// assert_eq!(doubled.eval()?.to_vec()?, [2, 4, 6, 8, 10, 12]);
/// let t = x.t(); // a view
/// assert_eq!((t.dims(), t.strides(), t.is_contiguous()), (&[3, 2][..], &[1, 3][..], false));
/// assert_eq!(t.to_vec()?, [1, 4, 2, 5, 3, 6]);
/// assert!(t.contiguous()?.is_contiguous() && x.copy()?.is_contiguous()); // each has a buffer of its own
/// assert_eq!(x.arrays().launches(), 4);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Array<T: Element> {
    pub(crate) arrays: Arrays,
    pub(crate) buffer: Arc<Buffer<T>>,
    pub(crate) layout: Layout,
}

impl<T: Element> Array<T> {
    /// The shape.
    pub fn shape(&self) -> &Shape {
        &self.layout.shape
    }

    /// The extents of the shape, the slowest first.
    pub fn dims(&self) -> &[usize] {
        self.layout.shape.dims()
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.layout.shape.rank()
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.layout.len()
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.layout.shape.is_empty()
    }

    /// How far neighbours along each dimension are from each other in the buffer, in elements.
    pub fn strides(&self) -> &[isize] {
        &self.layout.strides
    }

    /// Whether the elements lie one after the other in the buffer, in order; they may be some of its elements.
    pub fn is_contiguous(&self) -> bool {
        self.layout.is_dense()
    }

    /// What makes such arrays.
    pub fn arrays(&self) -> &Arrays {
        &self.arrays
    }

    /// The array as an expression.
    pub fn expr(&self) -> Expr<T> {
        self.into_expr()
    }

    /// Refuses an array that lies on another device.
    pub(crate) fn with_device_of<U: Element>(&self, other: &Array<U>) -> Result<()> {
        let id = |arrays: &Arrays| arrays.jit().device().info().id;
        let (owner, device) = (id(&other.arrays), id(&self.arrays));
        match owner == device {
            true => Ok(()),
            false => Err(ArrayError::Foreign { owner, device }),
        }
    }

    /// An array whose elements lie one after the other: this one, if they do; otherwise a copy, by a kernel.
    ///
    /// # Errors
    /// As [`Expr::eval`].
    pub fn contiguous(&self) -> Result<Array<T>> {
        match self.is_contiguous() {
            true => Ok(self.clone()),
            false => self.copy(),
        }
    }

    /// A copy with a buffer of its own, by a kernel.
    ///
    /// # Errors
    /// As [`Expr::eval`].
    pub fn copy(&self) -> Result<Array<T>> {
        self.expr().eval()
    }
}

/// Some elements of an array to be written: what [`Array::slice_mut`] gives.
pub struct ArrayMut<'a, T: Element> {
    pub(crate) array: &'a mut Array<T>,
    pub(crate) layout: Layout,
}

impl<T: Element> std::fmt::Debug for ArrayMut<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = std::any::type_name::<T>();
        write!(f, "ArrayMut<{name}>({})", self.layout.shape)
    }
}

impl<T: Element> ArrayMut<'_, T> {
    /// The shape of what is written.
    pub fn shape(&self) -> &Shape {
        &self.layout.shape
    }
}
