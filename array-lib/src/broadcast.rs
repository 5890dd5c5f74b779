//! From an expression to one kernel: fused broadcast.

use std::sync::Arc;

use kiln_device_stdlib::index::Index;
use kiln_jit_core::args::{Arg, IntoArg};
use kiln_jit_core::build::{Kernel, KernelBuilder, Val};
use kiln_jit_core::error::Error;
use kiln_jit_core::launch::grid_for;

use crate::expr::{FunctionName, Input, Node};
use crate::{Array, Element, Expr, IntoExpr, Result, Shape};

/// Threads of a block.
const BLOCK: u32 = 256;

/// How an array of the expression is read for element `i` of the result.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Access {
    /// Its element `i`.
    Linear,
    /// Its element `i % columns`.
    Row,
    /// Its only element.
    One,
    /// It is a number, not an array.
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
                && known.address().is_some()
                && known.address() == input.address()
                && known.type_name() == input.type_name()
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

/// Enters the inputs of `node` and writes what it computes, as far as it can be said.
fn sign<'e>(node: &'e Node, result: Shape, inputs: &mut Inputs<'e>, text: &mut Option<String>) {
    let mut write = |s: &str| {
        if let Some(text) = text {
            *text += s;
        }
    };
    match node {
        Node::Input { array, shape } => {
            let access = access(*shape, result);
            let position = inputs.enter(array, access);
            write(&format!("{position}:{access:?}:{}", array.type_name()));
        }
        Node::Scalar(number) => {
            let position = inputs.enter(number, Access::Scalar);
            write(&format!("{position}:{}", number.type_name()));
        }
        Node::Apply { name, args, .. } => {
            match name {
                Some(FunctionName::Operation(name)) => write(name),
                Some(FunctionName::Closure(id)) => write(&format!("{id:?}")),
                None => *text = None,
            }
            for arg in args {
                if let Some(text) = text {
                    *text += ",";
                }
                sign(arg, result, inputs, text);
            }
            if let Some(text) = text {
                *text += ";";
            }
        }
    }
}

/// Describes the value of `node` for element `i`. Inputs are met in the order of [`sign`].
fn describe<'k, 'e>(
    node: &'e Node,
    result: Shape,
    inputs: &mut Inputs<'e>,
    read: &dyn Fn(usize, Access) -> Val<'k>,
) -> Val<'k> {
    match node {
        Node::Input { array, shape } => {
            let access = access(*shape, result);
            read(inputs.enter(array, access), access)
        }
        Node::Scalar(number) => read(inputs.enter(number, Access::Scalar), Access::Scalar),
        Node::Apply { function, args, .. } => {
            let args: Vec<Val<'k>> = args
                .iter()
                .map(|arg| describe(arg, result, inputs, read))
                .collect();
            function(&args)
        }
    }
}

fn build<T: Element>(node: &Node, shape: Shape, inputs: &Inputs<'_>) -> Result<Kernel, Error> {
    Kernel::build("broadcast", |k: &KernelBuilder| {
        let out = k.slice_mut("out", k.ty::<T>());
        let columns = k.param("columns", k.ty::<u32>());
        let declare = |(n, (input, _)): (usize, &(&Arc<dyn Input>, Access))| {
            input.declare(k, &format!("in{n}"))
        };
        let params: Vec<Val<'_>> = inputs.list.iter().enumerate().map(declare).collect();
        let i = k.global_id().x();
        k.if_(i.lt(out.len()), || {
            let read = |position: usize, access: Access| match access {
                Access::Linear => params[position].at(i).get(),
                Access::Row => params[position].at(i % columns).get(),
                Access::One => params[position].at(0).get(),
                Access::Scalar => params[position],
            };
            let value = describe(node, shape, &mut Inputs::default(), &read);
            out.at(i).set(value);
        });
    })
}

impl<T: Element> Expr<T> {
    /// Computes the expression: one kernel, one launch.
    ///
    /// # Errors
    /// Shapes that do not go together, a closure whose result is not of type `T`, an operation
    /// that the element type does not have, an expression without any array, a device that has
    /// failed.
    pub fn eval(&self) -> Result<Array<T>> {
        let shape = self.shape?;
        let arrays = self.arrays.as_ref().ok_or(crate::ArrayError::NoArray)?;
        let mut inputs = Inputs::default();
        let mut signature = Some(format!("broadcast {}: ", std::any::type_name::<T>()));
        sign(&self.node, shape, &mut inputs, &mut signature);
        let kernel = arrays.kernel(signature, || build::<T>(&self.node, shape, &inputs))?;
        let mut out = arrays.jit().zeros::<T>(shape.len())?;
        if !shape.is_empty() {
            let mut args: Vec<Arg<'_>> = Vec::with_capacity(inputs.list.len() + 2);
            args.push((&mut out).into_arg());
            args.push((shape.columns() as u32).into_arg());
            args.extend(inputs.list.iter().map(|(input, _)| input.arg()));
            arrays
                .jit()
                .launch(&kernel, grid_for(shape.len(), BLOCK), BLOCK, &args)?;
            arrays.count_launch();
        }
        Ok(arrays.adopt(out, shape))
    }
}

impl<T: Element> Array<T> {
    /// Applies a function of the host program to every element; see [`Expr::map`].
    pub fn map<U: Element, F>(&self, f: F) -> Expr<U>
    where
        F: for<'k> Fn(Val<'k>) -> Val<'k> + Send + Sync + 'static,
    {
        self.into_expr().map(f)
    }
}
