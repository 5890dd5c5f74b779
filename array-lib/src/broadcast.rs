//! From an expression to one kernel: fused broadcast.

use std::collections::HashMap;
use std::sync::Arc;

use kiln_device_stdlib::index::Index;
use kiln_jit_core::args::{Arg, IntoArg, SlotId};
use kiln_jit_core::build::{Kernel, KernelBuilder, Val};
use kiln_jit_core::error::Error;
use kiln_jit_core::inspect::Inspection;
use kiln_jit_core::jit::Recording;
use kiln_jit_core::launch::grid_for;
use kiln_jit_core::runtime::Buffer;

use crate::expr::Node;
use crate::function::{ElementFn, NodeFn};
use crate::input::{Identity, Input};
use crate::signature::Signature;
use crate::{Array, ArrayError, Arrays, Element, Expr, IntoExpr, Result, Shape};

/// Threads of a block.
pub(crate) const BLOCK: u32 = 256;

/// How an array of the expression is read for element `i` of the result.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Access {
    /// Element `i` of the array.
    Linear,
    /// Element `i % columns` of the array.
    Row,
    /// The only element of the array.
    One,
    /// A number, not an array.
    Scalar,
}

/// The parameters of an expression's kernel: every array once, every number.
#[derive(Default)]
struct Inputs<'e> {
    list: Vec<(&'e Arc<dyn Input>, Access)>,
}

impl<'e> Inputs<'e> {
    /// The position of an input, entered if it is new.
    fn enter(&mut self, input: &'e Arc<dyn Input>, access: Access) -> usize {
        let same = |(known, a): &(&Arc<dyn Input>, Access)| {
            *a == access
                && known.identity().is_some()
                && known.identity() == input.identity()
                && known.element() == input.element()
        };
        self.list.iter().position(same).unwrap_or_else(|| {
            self.list.push((input, access));
            self.list.len() - 1
        })
    }
}

fn access(shape: Shape, result: Shape) -> Access {
    match shape {
        _ if shape.len() == result.len() => Access::Linear,
        _ if shape.len() == 1 => Access::One,
        _ => Access::Row,
    }
}

/// Enters the inputs of `node` and writes what it computes, as far as it can be said. What is left to do
/// is kept here: an expression may be deeper than a thread's stack.
fn sign<'e>(node: &'e Node, result: Shape, inputs: &mut Inputs<'e>, signature: &mut Signature) {
    let mut left = vec![node];
    while let Some(node) = left.pop() {
        let mut read = |input: &'e Arc<dyn Input>, access: Access| {
            let position = inputs.enter(input, access);
            signature.read(position, access, input.element());
        };
        match node {
            Node::Input { array, shape } => read(array, access(*shape, result)),
            Node::Scalar(number) => read(number, Access::Scalar),
            Node::Apply { name, args, .. } => {
                signature.apply(name.as_ref(), args.len());
                left.extend(args.iter().rev().map(|arg| &**arg));
            }
        }
    }
}

/// A step of [`describe`].
enum Describe<'e> {
    /// The value of a node.
    Node(&'e Node),
    /// The function applied to the values of its arguments, which come last.
    Apply(&'e NodeFn, usize),
}

/// Describes the value of `node` for element `i`. Inputs are met in the order of [`sign`].
fn describe<'k, 'e>(
    node: &'e Node,
    result: Shape,
    inputs: &mut Inputs<'e>,
    read: &dyn Fn(usize, Access) -> Val<'k>,
) -> Val<'k> {
    // What occurs several times is read once.
    let mut known: HashMap<usize, Val<'k>> = HashMap::new();
    let mut values: Vec<Val<'k>> = Vec::new();
    let mut left = vec![Describe::Node(node)];
    loop {
        let value = match left.pop() {
            None => break,
            Some(Describe::Node(Node::Input { array, shape })) => {
                let access = access(*shape, result);
                let position = inputs.enter(array, access);
                *known
                    .entry(position)
                    .or_insert_with(|| read(position, access))
            }
            Some(Describe::Node(Node::Scalar(number))) => {
                read(inputs.enter(number, Access::Scalar), Access::Scalar)
            }
            Some(Describe::Node(Node::Apply { function, args, .. })) => {
                left.push(Describe::Apply(&**function, args.len()));
                left.extend(args.iter().rev().map(|arg| Describe::Node(arg)));
                continue;
            }
            Some(Describe::Apply(function, count)) => {
                let args = values.split_off(values.len().saturating_sub(count));
                function(&args)
            }
        };
        values.push(value);
    }
    values[0]
}

/// An expression that is about to be part of a kernel.
pub(crate) struct Fused<'e> {
    node: &'e Node,
    /// The shape of the expression.
    pub(crate) shape: Shape,
    arrays: Option<&'e Arrays>,
    inputs: Inputs<'e>,
    /// The buffer that the result goes to, where the expression may read it.
    in_place: Option<SlotId>,
}

impl<'e> Fused<'e> {
    /// Enters the inputs of an expression, and adds what it computes to the signature of a kernel.
    pub(crate) fn new<T: Element>(expr: &'e Expr<T>, signature: &mut Signature) -> Result<Self> {
        let shape = expr.shape?;
        let mut inputs = Inputs::default();
        sign(&expr.node, shape, &mut inputs, signature);
        if inputs
            .list
            .iter()
            .all(|(_, access)| *access == Access::Scalar)
        {
            return Err(ArrayError::NoArray);
        }
        Ok(Fused {
            node: &expr.node,
            shape,
            arrays: expr.arrays.as_ref(),
            inputs,
            in_place: None,
        })
    }

    /// [`Fused::new`] for a graph, where the result goes to this buffer.
    pub(crate) fn recorded<T: Element>(
        expr: &'e Expr<T>,
        to: Option<SlotId>,
        signature: &mut Signature,
    ) -> Result<Self> {
        let fused = Fused::new(expr, signature)?;
        let in_place = to.filter(|to| fused.reads(*to));
        let list = fused.inputs.list.iter();
        let mut own = list.filter(|(input, _)| is_slot(&***input, in_place));
        match own.all(|(_, access)| *access == Access::Linear) {
            true => Ok(Fused { in_place, ..fused }),
            false => Err(ArrayError::InPlace),
        }
    }

    /// Where the expression is computed, if that is said: it is by an array.
    pub(crate) fn arrays(&self) -> Result<&'e Arrays> {
        let slot = |(input, _): &(&Arc<dyn Input>, Access)| {
            matches!(input.identity(), Some(Identity::Slot(_)))
        };
        match self.arrays {
            _ if self.inputs.list.iter().any(slot) => Err(ArrayError::Slots),
            Some(arrays) => Ok(arrays),
            None => Err(ArrayError::NoArray),
        }
    }

    /// Whether the expression reads what a slot stands for.
    pub(crate) fn reads(&self, slot: SlotId) -> bool {
        let mut inputs = self.inputs.list.iter();
        inputs.any(|(input, _)| is_slot(&***input, Some(slot)))
    }

    /// The inputs as a graph passes them, which keeps what they need.
    pub(crate) fn held(&self, graph: &mut Recording) -> Result<Vec<Arc<dyn Input>>> {
        let list = self.inputs.list.iter().map(|(input, _)| *input);
        let passed = list.filter(|input| !is_slot(&***input, self.in_place));
        let held = passed.map(|input| Ok(input.hold(graph)?.unwrap_or_else(|| input.clone())));
        held.collect()
    }

    /// Declares the parameters that [`Fused::args`] are for; `out` is that of the result, which is read where it is an
    /// input, too.
    pub(crate) fn declare<'k>(&self, k: &'k KernelBuilder, out: Val<'k>) -> Elements<'_, 'e, 'k> {
        let columns = k.param("columns", k.ty::<u32>());
        let list = self.inputs.list.iter().enumerate();
        let params = list.map(|(n, (input, _))| match is_slot(&***input, self.in_place) {
            true => out,
            false => input.declare(k, &format!("in{n}")),
        });
        Elements {
            fused: self,
            columns,
            params: params.collect(),
        }
    }

    /// The arguments of the kernel for the expression.
    pub(crate) fn args(&self) -> impl Iterator<Item = Arg<'_>> {
        let inputs = self.inputs.list.iter().map(|(input, _)| input.arg());
        std::iter::once(self.first_arg()).chain(inputs)
    }

    /// The first of them, before the inputs.
    pub(crate) fn first_arg<'a>(&self) -> Arg<'a> {
        (self.shape.columns() as u32).into_arg()
    }
}

/// The elements of an expression in its kernel.
pub(crate) struct Elements<'f, 'e, 'k> {
    fused: &'f Fused<'e>,
    columns: Val<'k>,
    params: Vec<Val<'k>>,
}

impl<'k> Elements<'_, '_, 'k> {
    /// How many there are, as one of the arrays tells that has as many.
    pub(crate) fn len(&self) -> Val<'k> {
        let is_linear = |(_, access): &(_, Access)| *access == Access::Linear;
        let position = self.fused.inputs.list.iter().position(is_linear);
        // Every shape of a result is that of one of its arrays, in its number of elements.
        self.params[position.unwrap_or_default()].len()
    }

    /// The element with this index.
    pub(crate) fn at(&self, i: Val<'k>) -> Val<'k> {
        let read = |position: usize, access: Access| match access {
            Access::Linear => self.params[position].at(i).get(),
            Access::Row => self.params[position].at(i % self.columns).get(),
            Access::One => self.params[position].at(0).get(),
            Access::Scalar => self.params[position],
        };
        describe(
            self.fused.node,
            self.fused.shape,
            &mut Inputs::default(),
            &read,
        )
    }
}

/// Whether an input is what this slot stands for.
fn is_slot(input: &dyn Input, slot: Option<SlotId>) -> bool {
    slot.is_some_and(|slot| input.identity() == Some(Identity::Slot(slot)))
}

/// Describes the kernel that stores each element.
pub(crate) fn build<T: Element>(fused: &Fused<'_>) -> Result<Kernel, Error> {
    Kernel::build("broadcast", |k: &KernelBuilder| {
        let out = k.slice_mut("out", k.ty::<T>());
        let elements = fused.declare(k, out);
        let i = k.global_id().x();
        k.if_(i.lt(out.len()), || out.at(i).set(elements.at(i)));
    })
}

impl<T: Element> Expr<T> {
    /// The expression's kernel, made ready and applied to a new array of the result.
    fn with_kernel<R>(
        &self,
        run: impl FnOnce(&Fused<'_>, &Kernel, &mut Buffer<T>) -> Result<R>,
    ) -> Result<(R, Array<T>)> {
        let mut signature = Signature::broadcast::<T>();
        let fused = Fused::new(self, &mut signature)?;
        let arrays = fused.arrays()?;
        let kernel = arrays.kernel(signature, || build::<T>(&fused))?;
        let mut out = arrays.jit().zeros::<T>(fused.shape.len())?;
        let result = run(&fused, &kernel, &mut out)?;
        Ok((result, arrays.of(out, fused.shape)))
    }

    /// Computes the expression: one kernel, one launch.
    ///
    /// # Errors
    /// Shapes that do not go together, an [`ElementFn::build`] whose result is not of the type it
    /// says, an operation that the element type does not have, an expression without any array, a
    /// device that has failed.
    pub fn eval(&self) -> Result<Array<T>> {
        let ((), out) = self.with_kernel(|fused, kernel, out| {
            if fused.shape.is_empty() {
                return Ok(());
            }
            let args: Vec<Arg<'_>> = std::iter::once(out.into_arg())
                .chain(fused.args())
                .collect();
            let grid = grid_for(fused.shape.len(), BLOCK);
            let arrays = fused.arrays()?;
            arrays.jit().launch(kernel, grid, BLOCK, &args)?;
            arrays.count_launch();
            Ok(())
        })?;
        Ok(out)
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
        let (inspection, _) = self.with_kernel(|fused, kernel, out| {
            let args: Vec<Arg<'_>> = std::iter::once(out.into_arg())
                .chain(fused.args())
                .collect();
            Ok(fused.arrays()?.jit().inspect(kernel, &args)?)
        })?;
        Ok(inspection)
    }
}

impl<T: Element> Array<T> {
    /// Applies a function to every element; see [`Expr::map`].
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.vector(vec![-1.0f32, 4.0])?;
    /// let y = x.map(device!(|v| if v < 0.0 { 0.0 } else { v.sqrt() }));
    /// assert_eq!(y.eval()?.to_vec()?, [0.0, 2.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn map<U: Element>(&self, f: ElementFn<(T,), U>) -> Expr<U> {
        self.into_expr().map(f)
    }
}
