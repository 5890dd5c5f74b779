//! Expressions that are computed: one kernel, one launch, into a new array or one that is there.

use std::ops;
use std::sync::Arc;

use kiln_jit_core::build::{Kernel, KernelBuilder};
use kiln_jit_core::error::Error;
use kiln_jit_core::inspect::Inspection;
use kiln_jit_core::runtime::Buffer;

use crate::fused::{Explanation, Fused, Purpose};
use crate::input::Identity;
use crate::kept::Evaluation;
use crate::layout::Layout;
use crate::signature::Signature;
use crate::{
    Array, ArrayError, ArrayMut, Arrays, Element, Expr, IntoExpr, IntoShape, Result, Shape,
};

/// Threads of a block.
pub(crate) const BLOCK: u32 = 256;

/// Describes the kernel that stores each element.
pub(crate) fn build<T: Element>(fused: &Fused<'_>) -> Result<Kernel, Error> {
    Kernel::build(&fused.name("eval"), |k: &KernelBuilder| {
        let out = k.slice_mut("out", k.ty::<T>());
        let elements = fused.declare(k, out);
        elements.store_all();
    })
}

impl<T: Element> Expr<T> {
    /// Computes the expression: one kernel, one launch.
    ///
    /// # Errors
    /// Shapes that do not go together, an [`ElementFn::build`](crate::ElementFn::build) whose result is not of the type
    /// it says, an operation that the element type does not have, an expression without any array, a device that has
    /// failed.
    pub fn eval(&self) -> Result<Array<T>> {
        if let (Some(arrays), Ok(shape)) = (&self.arrays, &self.shape)
            && let Some(kept) = self.kept(arrays)
        {
            let mut out = arrays.jit().unspecified::<T>(shape.len())?;
            kept.launch(arrays, &mut out)?;
            return Ok(arrays.of(out, shape.clone()));
        }
        let mut signature = Signature::broadcast::<T>();
        let fused = Fused::new(self, &Purpose::default(), &mut signature)?;
        let arrays = fused.arrays()?;
        let len = fused.shape.len();
        let mut out = arrays.jit().unspecified::<T>(len)?;
        if len > 0 {
            let is_named = signature.is_named();
            let kernel = arrays.kernel(signature, || build::<T>(&fused))?;
            let evaluation = Evaluation::new(kernel, &fused);
            evaluation.launch(arrays, &mut out)?;
            if is_named {
                self.keep(arrays, evaluation, fused.buffers());
            }
        }
        Ok(arrays.of(out, fused.shape))
    }

    /// Computes the expression into an array that is there: what [`Array::assign`] does, seen from here.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let (x, mut y) = (arrays.vector(vec![1.0f32, 2.0])?, arrays.zeros(2)?);
    /// (&x * 10.0).eval_into(&mut y)?;
    /// assert_eq!(y.to_vec()?, [10.0, 20.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Array::assign`].
    #[track_caller]
    pub fn eval_into(&self, array: &mut Array<T>) -> Result<()> {
        array.assign(self)
    }

    /// What the kernel of the expression becomes, stage by stage; nothing is launched.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.vector(vec![1.0f32, 2.0])?;
    /// let y = 2.0 * &x + &x;
    /// assert!(y.inspect()?.ir().contains("mul"));
    /// assert_eq!(y.eval()?.to_vec()?, [3.0, 6.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Expr::eval`], as far as compilation goes.
    pub fn inspect(&self) -> Result<Inspection> {
        let mut signature = Signature::broadcast::<T>();
        let fused = Fused::new(self, &Purpose::default(), &mut signature)?;
        let arrays = fused.arrays()?;
        let kernel = arrays.kernel(signature, || build::<T>(&fused))?;
        let mut out = arrays.jit().unspecified::<T>(fused.shape.len())?;
        let evaluation = Evaluation::new(kernel, &fused);
        let args = evaluation.args(&mut out)?;
        Ok(arrays.jit().inspect(evaluation.kernel(), &args)?)
    }

    /// What [`Expr::eval`] would do, in words: the kernel, what is fused in it, and how each array is read. Nothing is
    /// compiled or launched.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::on(Device::cpu()));
    /// let x = arrays.ones::<f32>((3, 100))?;
    /// let explained = (2.0 * &x + x.row(0)?).sqrt().explain()?;
    /// assert_eq!(explained.kernel(), "eval_sqrt_add_mul");
    /// assert_eq!(
    ///     explained.to_string(),
    ///     "one kernel, `eval_sqrt_add_mul`, one launch: 3x100 of f32
    ///   sqrt(add(mul(n0, in1), in2))
    ///   n0: a number, f32
    ///   in1: an array of f32, one after the other
    ///   in2: an array of f32, by distances, neighbours side by side
    ///   2 dimensions are left of those of the arrays, indices have 32 bits, blocks go along rows"
    /// );
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Expr::eval`], as far as the expression goes.
    pub fn explain(&self) -> Result<Explanation> {
        let mut signature = Signature::broadcast::<T>();
        let fused = Fused::new(self, &Purpose::default(), &mut signature)?;
        fused.arrays()?;
        Ok(fused.explained(std::any::type_name::<T>(), self.nodes))
    }

    /// An expression whose elements are those of this, as many as `shape` has.
    #[track_caller]
    fn filling(&self, shape: &Shape) -> Result<()> {
        let own = self.shape.clone()?;
        let mismatch = match own.broadcast(shape) {
            Ok(both) if both == *shape => return Ok(()),
            _ => crate::ShapeMismatch {
                left: shape.clone(),
                right: own,
                at: Some(std::panic::Location::caller()),
            },
        };
        Err(mismatch.into())
    }
}

/// Stores an expression in some elements of a buffer. What else the buffer has stays as it is.
fn store<T: Element>(
    arrays: &Arrays,
    buffer: &mut Arc<Buffer<T>>,
    layout: &Layout,
    expr: Expr<T>,
) -> Result<()> {
    if layout.shape.is_empty() {
        return Ok(());
    }
    let own = Identity::Buffer(buffer.address());
    let is_all = layout.is_all(buffer.len());
    let can_keep = is_all
        && expr
            .shape
            .as_ref()
            .is_ok_and(|shape| *shape == layout.shape);
    if can_keep && let Some(kept) = expr.kept_into(arrays, own) {
        return launch_into(arrays, buffer, kept, false);
    }
    let purpose = Purpose {
        out: (!is_all).then_some(layout),
        own: Some(own),
        own_layout: Some(layout),
        ..Purpose::default()
    };
    let mut signature = Signature::broadcast::<T>();
    let fused = match Fused::new(&expr, &purpose, &mut signature) {
        // It reads what is written, and elsewhere: the results are stored when all are there.
        Err(ArrayError::InPlace) => {
            let results = expr.eval()?;
            drop(expr);
            return store(arrays, buffer, layout, results.into_expr());
        }
        fused => fused?,
    };
    let reads_own = fused.reads(own);
    let can_keep = can_keep && !reads_own && signature.is_named();
    let kernel = arrays.kernel(signature, || build::<T>(&fused))?;
    let evaluation = Evaluation::new(kernel, &fused);
    if can_keep {
        launch_into(arrays, buffer, &evaluation, false)?;
        expr.keep(arrays, evaluation, fused.buffers());
        return Ok(());
    }
    drop(fused);
    // If it was the only one to hold the buffer, results go there.
    drop(expr);
    launch_into(arrays, buffer, &evaluation, !is_all || reads_own)
}

/// Launches an expression's kernel with its result in a buffer, which is made anew, with the old elements or without,
/// where others have it as well.
fn launch_into<T: Element>(
    arrays: &Arrays,
    buffer: &mut Arc<Buffer<T>>,
    evaluation: &Evaluation,
    needs_old: bool,
) -> Result<()> {
    if Arc::get_mut(buffer).is_none() {
        *buffer = Arc::new(match needs_old {
            true => copied(arrays, buffer)?,
            false => arrays.jit().unspecified(buffer.len())?,
        });
    }
    match Arc::get_mut(buffer) {
        Some(out) => evaluation.launch(arrays, out),
        // Nobody else has had it since it was made above.
        None => Err(ArrayError::InPlace),
    }
}

impl Arrays {
    /// An array whose elements are not specified, for kernels that write all of them.
    pub(crate) fn unspecified<T: Element>(&self, shape: impl IntoShape) -> Result<Array<T>> {
        let shape = shape.into_shape();
        Ok(self.of(self.jit().unspecified(shape.len())?, shape))
    }
}

/// A buffer of the same elements.
pub(crate) fn copied<T: Element>(arrays: &Arrays, buffer: &Buffer<T>) -> Result<Buffer<T>> {
    let mut copy = arrays.jit().unspecified::<T>(buffer.len())?;
    copy.copy_from(buffer)?;
    Ok(copy)
}

impl<T: Element> Array<T> {
    /// Makes the elements those of an expression, an array or a number, whose shape goes with the array's. It is
    /// computed in place if nobody else has the buffer and the expression reads of this array, if at all, the element
    /// that it is for; otherwise into a new buffer. What was cloned of the array before, and views of it, stay as they
    /// are.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let mut x = arrays.array(vec![1.0f32, 2.0, 3.0, 4.0], (2, 2))?;
    /// x.assign(2.0 * &x + 1.0)?; // in place
    /// assert_eq!(x.to_vec()?, [3.0, 5.0, 7.0, 9.0]);
    /// x.assign(&x + x.t())?;
    /// assert_eq!(x.to_vec()?, [6.0, 12.0, 12.0, 18.0]);
    /// x += 1.0;
    /// x.assign(7.0)?;
    /// assert_eq!(x.to_vec()?, [7.0; 4]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Expr::eval`]; a shape that does not go with the array's.
    #[track_caller]
    pub fn assign(&mut self, value: impl IntoExpr<T>) -> Result<()> {
        let expr = value.into_expr();
        expr.filling(self.shape())?;
        if !self.layout.is_all(self.buffer.len()) {
            // A view becomes an array of its own.
            let shape = self.shape().clone();
            let mut own = self.arrays.unspecified::<T>(shape)?;
            store(&own.arrays, &mut own.buffer, &own.layout, expr)?;
            *self = own;
            return Ok(());
        }
        store(&self.arrays, &mut self.buffer, &self.layout, expr)
    }
}

impl<T: Element> ArrayMut<'_, T> {
    /// Makes the elements those of an expression, an array or a number, whose shape goes with the view's; in place, as
    /// [`Array::assign`]. Others of the array stay as they are.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let mut x = arrays.array((1..=6).collect::<Vec<i32>>(), (2, 3))?;
    /// let row = x.row(0)?;
    /// x.slice_mut(s![1, ..])?.assign(row * 10)?;
    /// x.slice_mut(s![.., -1])?.assign(0)?;
    /// assert_eq!(x.to_vec()?, [1, 2, 0, 10, 20, 0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Array::assign`].
    #[track_caller]
    pub fn assign(&mut self, value: impl IntoExpr<T>) -> Result<()> {
        let expr = value.into_expr();
        expr.filling(&self.layout.shape)?;
        let array = &mut *self.array;
        store(&array.arrays, &mut array.buffer, &self.layout, expr)
    }
}

macro_rules! assigning {
    ($($trait:ident $method:ident $operator:ident $by:ident;)*) => {$(
        /// # Panics
        /// Where [`Array::assign`] gives an error: shapes that do not go together, a device that has failed.
        impl<T: Element, R: IntoExpr<T>> ops::$trait<R> for Array<T> {
            #[track_caller]
            fn $method(&mut self, right: R) {
                let value = ops::$operator::$by(self.expr(), right);
                if let Err(error) = self.assign(value) {
                    panic!("{error}");
                }
            }
        }
    )*};
}
assigning! {
    AddAssign add_assign Add add;
    SubAssign sub_assign Sub sub;
    MulAssign mul_assign Mul mul;
    DivAssign div_assign Div div;
    RemAssign rem_assign Rem rem;
}
