//! Expressions in graphs: recorded as launches, over slots and over arrays that the graph keeps.
//!
//! The closure of `Jit::graph` has slots where arrays would be. A slot stands in an expression as an array does: it is a
//! vector of the sample's length, which replays have to keep to. Nothing is computed when it is recorded.

use std::ops::Range;
use std::sync::Arc;

use kiln_jit_core::args::{Arg, IntoArg, Slot, SlotMut, ValueSlot};
use kiln_jit_core::build::{KernelBuilder, Val};
use kiln_jit_core::error::Error;
use kiln_jit_core::ir::TypeDigest;
use kiln_jit_core::jit::Recording;
use kiln_jit_core::launch::grid_for;

use crate::eval::{BLOCK, build};
use crate::expr::Node;
use crate::function::{Applied, ElementFn};
use crate::fused::{Fused, Passed, Purpose};
use crate::input::{Identity, Input};
use crate::layout::Layout;
use crate::reduce::{self, MAX_BLOCKS};
use crate::signature::{Signature, Way};
use crate::statistics::sum_of;
use crate::{ArrayError, Element, Expr, IntoExpr, Result, Shape};

/// A buffer of a replay.
pub(crate) struct SlotInput<T: Element>(pub(crate) Slot<T>);

impl<T: Element> Input for SlotInput<T> {
    fn arg(&self) -> Arg<'_> {
        (&self.0).into_arg()
    }

    fn part(&self, _: Range<usize>) -> Result<Arg<'_>, Error> {
        // A graph passes what slots stand for as a whole.
        Ok(self.arg())
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn element(&self) -> TypeDigest {
        T::FORM.digest()
    }
    fn element_name(&self) -> &'static str {
        std::any::type_name::<T>()
    }

    fn element_bytes(&self) -> usize {
        size_of::<T>()
    }

    fn identity(&self) -> Option<Identity> {
        Some(Identity::Slot(self.0.id()))
    }

    fn declare<'k>(&self, k: &'k KernelBuilder, name: &str) -> Val<'k> {
        k.slice(name, k.ty::<T>())
    }

    fn hold(&self, graph: &mut Recording) -> Result<Option<Arc<dyn Input>>, Error> {
        graph.fix_length(&self.0)?;
        Ok(None)
    }
}

/// A number of a replay.
struct ValueInput<T: Element>(ValueSlot<T>);

impl<T: Element> Input for ValueInput<T> {
    fn arg(&self) -> Arg<'_> {
        (&self.0).into_arg()
    }

    fn part(&self, _: Range<usize>) -> Result<Arg<'_>, Error> {
        Ok(self.arg())
    }

    fn len(&self) -> usize {
        1
    }

    fn element(&self) -> TypeDigest {
        T::FORM.digest()
    }
    fn element_name(&self) -> &'static str {
        std::any::type_name::<T>()
    }

    fn element_bytes(&self) -> usize {
        size_of::<T>()
    }

    fn identity(&self) -> Option<Identity> {
        Some(Identity::Slot(self.0.id()))
    }

    fn declare<'k>(&self, k: &'k KernelBuilder, name: &str) -> Val<'k> {
        k.param(name, k.ty::<T>())
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element> IntoExpr<T> for &Slot<T> {
    fn into_expr(self) -> Expr<T> {
        let shape = Shape::new(self.len());
        let node = Node::Read {
            buffer: Arc::new(SlotInput(self.clone())),
            layout: Layout::dense(shape.clone()),
        };
        Expr::new(node, 1, None, Ok(shape))
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element> IntoExpr<T> for &SlotMut<T> {
    fn into_expr(self) -> Expr<T> {
        (&self.as_slot()).into_expr()
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element> IntoExpr<T> for &ValueSlot<T> {
    fn into_expr(self) -> Expr<T> {
        let number = Node::Scalar(Arc::new(ValueInput(self.clone())));
        Expr::new(number, 1, None, Ok(Shape::default()))
    }
}

impl<T: Element> Expr<T> {
    /// Records the expression in a graph: one launch, whose result goes to a buffer of as many elements. Arrays in it
    /// are kept by the graph; slots, in the place of arrays and numbers, stand for what replays are given. The result may
    /// go to a buffer that the expression reads.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let jit = Jit::new()?;
    /// let arrays = Arrays::new(&jit);
    /// let bias = arrays.vector(vec![1.0f32, 2.0, 3.0])?;
    /// let (x, mut y) = (jit.upload(&[1.0f32; 3])?, jit.zeros::<f32>(3)?);
    /// let mut total = jit.zeros::<f32>(1)?;
    /// let samples = (&x, 2.0f32, &mut y, &mut total);
    /// let mut graph = jit.graph(samples, |g, (x, a, mut y, mut total)| {
    ///     (x.into_expr() * &a + &bias).record(g, &mut y)?;
    ///     (y.into_expr() * 10.0).record(g, &mut y)?; // in place
    ///     y.into_expr().record_sum(g, &mut total)?;
    ///     let mut most = g.keep(jit.zeros::<f32>(1)?);
    ///     y.into_expr().record_reduce(g, &mut most, device!(|a, b| a.max(b)), 0.0)?;
    ///     (y.into_expr() / &most).record(g, &mut y)?; // one element goes with everything
    ///     Ok(())
    /// })?;
    /// graph.replay(args!(&x, 7.0f32, &mut y, &mut total))?;
    /// assert_eq!(y.to_vec()?, [0.8, 0.9, 1.0]);
    /// assert_eq!(total.to_vec()?, [270.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Expr::eval`]; a result of another length than the buffer's, or without elements; one that goes to a buffer
    /// which is read as a row or as one element of many; arrays of another device than the graph's; slots of another
    /// graph.
    pub fn record(&self, graph: &mut Recording, to: &mut SlotMut<T>) -> Result<()> {
        let mut signature = Signature::broadcast::<T>();
        let purpose = Purpose {
            own: Some(Identity::Slot(to.id())),
            recorded: true,
            ..Purpose::default()
        };
        let fused = fused_for_graph(self, &purpose, &mut signature)?;
        let (shape, length) = (&fused.shape, to.len());
        if shape.len() != length || shape.is_empty() {
            let shape = shape.clone();
            return Err(ArrayError::ResultLength { shape, length });
        }
        let kernel = build::<T>(&fused)?;
        graph.fix_length(to)?;
        let held = held(fused.passed(), graph)?;
        let mut args: Vec<Arg<'_>> = vec![to.into_arg()];
        for passed in &held {
            args.push(passed.arg()?);
        }
        Ok(graph.launch(&kernel, fused.grid(), BLOCK, &args)?)
    }

    /// Records a fold of all elements in a graph, as [`Expr::reduce`] does it: its result goes to the first element of a
    /// buffer. [`Expr::record`] has an example.
    ///
    /// # Errors
    /// As [`Expr::record`]; a buffer without elements, or one that the expression reads.
    pub fn record_reduce(
        &self,
        graph: &mut Recording,
        to: &mut SlotMut<T>,
        op: ElementFn<(T, T), T>,
        identity: T,
    ) -> Result<()> {
        let blocks = grid_for(self.shape.clone()?.len(), reduce::BLOCK).min(MAX_BLOCKS);
        if blocks == 1 {
            return self.record_fold(graph, to, (&op.applied, identity), 1);
        }
        let partial = graph.jit().zeros::<T>(blocks as usize)?;
        let mut partial = graph.keep(partial);
        self.record_fold(graph, &mut partial, (&op.applied, identity), blocks)?;
        let partial: Expr<T> = partial.into_expr();
        partial.record_fold(graph, to, (&op.applied, identity), 1)
    }

    /// Records the sum of all elements in a graph: it goes to the first element of a buffer. [`Expr::record`] has an
    /// example.
    ///
    /// # Errors
    /// An element type without addition, or as [`Expr::record_reduce`].
    pub fn record_sum(&self, graph: &mut Recording, to: &mut SlotMut<T>) -> Result<()>
    where
        T: Default,
    {
        self.record_reduce(graph, to, sum_of(), T::default())
    }

    fn record_fold(
        &self,
        graph: &mut Recording,
        to: &mut SlotMut<T>,
        (op, identity): (&Applied, T),
        blocks: u32,
    ) -> Result<()> {
        let mut signature = Signature::reduction::<T>(op);
        let purpose = Purpose {
            counts: true,
            recorded: true,
            ..Purpose::default()
        };
        let fused = fused_for_graph(self, &purpose, &mut signature)?;
        let (shape, length) = (&fused.shape, to.len());
        if to.is_empty() || shape.is_empty() {
            let shape = shape.clone();
            return Err(ArrayError::ResultLength { shape, length });
        }
        if fused.reads(Identity::Slot(to.id())) {
            return Err(ArrayError::InPlace);
        }
        let kernel = reduce::build::<T>(&fused, op, Way::Whole)?;
        let held = held(fused.passed(), graph)?;
        let mut args: Vec<Arg<'_>> = vec![to.into_arg(), identity.into_arg()];
        for passed in &held {
            args.push(passed.arg()?);
        }
        args.extend(op.captures.iter().map(|number| number.arg()));
        Ok(graph.launch(&kernel, blocks, reduce::BLOCK, &args)?)
    }
}

/// An expression for a graph, which is one over arrays and slots.
fn fused_for_graph<'e, T: Element>(
    expr: &'e Expr<T>,
    purpose: &Purpose<'_>,
    signature: &mut Signature,
) -> Result<Fused<'e>> {
    let fused = Fused::new(expr, purpose, signature)?;
    match fused.has_array() {
        true => Ok(fused),
        false => Err(ArrayError::NoArray),
    }
}

/// What is passed, kept by a graph.
fn held(passed: Vec<Passed>, graph: &mut Recording) -> Result<Vec<Passed>> {
    passed
        .into_iter()
        .map(|passed| passed.held(graph))
        .collect()
}
