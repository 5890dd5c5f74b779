//! Lazy expressions over arrays: what is to be computed, before it is one kernel.

use std::any::TypeId;
use std::marker::PhantomData;
use std::sync::Arc;

use kiln_jit_core::args::{Arg, IntoArg};
use kiln_jit_core::build::Val;
use kiln_jit_core::runtime::Buffer;
use kiln_jit_core::value::KernelType;

use crate::{Array, Arrays, Shape, ShapeMismatch};

/// A type of array elements: whatever a kernel can hold.
pub trait Element: KernelType {}

impl<T: KernelType> Element for T {}

/// A computation on values of a kernel, as a node of an expression.
pub(crate) type NodeFn = dyn for<'k> Fn(&[Val<'k>]) -> Val<'k> + Send + Sync;

/// What a node of an expression is.
pub(crate) enum Node {
    /// An array.
    Input {
        /// It.
        array: Arc<dyn Input>,
        /// Its shape.
        shape: Shape,
    },
    /// A number from the host, a parameter of the kernel.
    Scalar(Arc<dyn Input>),
    /// A function of other nodes.
    Apply {
        /// The function.
        function: Arc<NodeFn>,
        /// What identifies the function; `None` when nothing does.
        name: Option<FunctionName>,
        /// Its arguments.
        args: Vec<Arc<Node>>,
    },
}

/// What identifies a function of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum FunctionName {
    /// An operation of this crate.
    Operation(String),
    /// The type of a closure that captures nothing: the type is the function.
    Closure(TypeId),
}

/// Something that is passed to the kernel of an expression.
pub(crate) trait Input: Send + Sync {
    /// The argument.
    fn arg(&self) -> Arg<'_>;
    /// Its element type as Rust writes it.
    fn type_name(&self) -> &'static str;
    /// Identifies the input: the same array occurring twice is one parameter.
    fn address(&self) -> Option<u64>;
    /// Declares a parameter for it.
    fn declare<'k>(&self, k: &'k kiln_jit_core::build::KernelBuilder, name: &str) -> Val<'k>;
}

struct ArrayInput<T: Element>(Arc<Buffer<T>>);

impl<T: Element> Input for ArrayInput<T> {
    fn arg(&self) -> Arg<'_> {
        (&*self.0).into_arg()
    }
    fn type_name(&self) -> &'static str {
        std::any::type_name::<T>()
    }
    fn address(&self) -> Option<u64> {
        Some(self.0.address())
    }
    fn declare<'k>(&self, k: &'k kiln_jit_core::build::KernelBuilder, name: &str) -> Val<'k> {
        k.slice(name, k.ty::<T>())
    }
}

struct ScalarInput<T: Element>(T);

impl<T: Element> Input for ScalarInput<T> {
    fn arg(&self) -> Arg<'_> {
        self.0.into_arg()
    }
    fn type_name(&self) -> &'static str {
        std::any::type_name::<T>()
    }
    fn address(&self) -> Option<u64> {
        None
    }
    fn declare<'k>(&self, k: &'k kiln_jit_core::build::KernelBuilder, name: &str) -> Val<'k> {
        k.param(name, k.ty::<T>())
    }
}

/// An element-wise computation over arrays that has not happened yet. Cheap to clone.
#[derive(Clone)]
pub struct Expr<T: Element> {
    pub(crate) node: Arc<Node>,
    /// Where it is computed; `None` for a number alone.
    pub(crate) arrays: Option<Arrays>,
    /// The shape of the result, or the first mismatch, which `eval` reports.
    pub(crate) shape: Result<Shape, ShapeMismatch>,
    element: PhantomData<T>,
}

impl<T: Element> std::fmt::Debug for Expr<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Expr<{}>({:?})", std::any::type_name::<T>(), self.shape)
    }
}

/// What can stand in an expression: arrays, expressions and numbers.
pub trait IntoExpr<T: Element> {
    /// As an expression.
    fn into_expr(self) -> Expr<T>;
}

impl<T: Element> IntoExpr<T> for Expr<T> {
    fn into_expr(self) -> Expr<T> {
        self
    }
}

impl<T: Element> IntoExpr<T> for &Expr<T> {
    fn into_expr(self) -> Expr<T> {
        self.clone()
    }
}

impl<T: Element> IntoExpr<T> for &Array<T> {
    fn into_expr(self) -> Expr<T> {
        let array = Arc::new(ArrayInput(self.buffer.clone()));
        let node = Node::Input {
            array,
            shape: self.shape,
        };
        Expr::new(node, Some(self.arrays.clone()), Ok(self.shape))
    }
}

impl<T: Element> IntoExpr<T> for Array<T> {
    fn into_expr(self) -> Expr<T> {
        (&self).into_expr()
    }
}

impl<T: Element> IntoExpr<T> for T {
    fn into_expr(self) -> Expr<T> {
        Expr::new(
            Node::Scalar(Arc::new(ScalarInput(self))),
            None,
            Ok(Shape::Vector(1)),
        )
    }
}

impl<T: Element> Expr<T> {
    pub(crate) fn new(
        node: Node,
        arrays: Option<Arrays>,
        shape: Result<Shape, ShapeMismatch>,
    ) -> Self {
        Expr {
            node: Arc::new(node),
            arrays,
            shape,
            element: PhantomData,
        }
    }

    /// An operation of this crate on one expression.
    pub(crate) fn unary(
        self,
        name: impl Into<String>,
        f: impl for<'k> Fn(Val<'k>) -> Val<'k> + Send + Sync + 'static,
    ) -> Expr<T> {
        let name = Some(FunctionName::Operation(name.into()));
        self.apply(name, move |args| f(args[0]))
    }

    /// An operation of this crate on two expressions.
    pub(crate) fn binary(
        self,
        other: Expr<T>,
        name: &str,
        f: impl for<'k> Fn(Val<'k>, Val<'k>) -> Val<'k> + Send + Sync + 'static,
    ) -> Expr<T> {
        let name = Some(FunctionName::Operation(name.to_owned()));
        self.apply2(other, name, move |args| f(args[0], args[1]))
    }

    fn apply<U: Element>(
        self,
        name: Option<FunctionName>,
        f: impl for<'k> Fn(&[Val<'k>]) -> Val<'k> + Send + Sync + 'static,
    ) -> Expr<U> {
        let node = Node::Apply {
            function: Arc::new(f),
            name,
            args: vec![self.node],
        };
        Expr::new(node, self.arrays, self.shape)
    }

    fn apply2<U: Element, V: Element>(
        self,
        other: Expr<U>,
        name: Option<FunctionName>,
        f: impl for<'k> Fn(&[Val<'k>]) -> Val<'k> + Send + Sync + 'static,
    ) -> Expr<V> {
        let shape = self
            .shape
            .and_then(|a| other.shape.and_then(|b| a.broadcast(b)));
        let args = vec![self.node, other.node];
        let node = Node::Apply {
            function: Arc::new(f),
            name,
            args,
        };
        Expr::new(node, self.arrays.or(other.arrays), shape)
    }

    /// Applies a function of the host program to every element: it runs once, while the kernel is
    /// described, and becomes part of it. The result may be of another type.
    pub fn map<U: Element, F>(self, f: F) -> Expr<U>
    where
        F: for<'k> Fn(Val<'k>) -> Val<'k> + Send + Sync + 'static,
    {
        self.apply(closure_name::<F>(), move |args| f(args[0]))
    }

    /// Applies a function of the host program to every pair of elements.
    pub fn zip<U: Element, V: Element, F>(self, other: impl IntoExpr<U>, f: F) -> Expr<V>
    where
        F: for<'k> Fn(Val<'k>, Val<'k>) -> Val<'k> + Send + Sync + 'static,
    {
        self.apply2(other.into_expr(), closure_name::<F>(), move |args| {
            f(args[0], args[1])
        })
    }
}

/// A closure that captures nothing is identified by its type.
pub(crate) fn closure_name<F: 'static>() -> Option<FunctionName> {
    (size_of::<F>() == 0).then(|| FunctionName::Closure(TypeId::of::<F>()))
}
