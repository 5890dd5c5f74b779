//! Lazy expressions over arrays: what is to be computed, before it is one kernel.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::{Arc, OnceLock};

use kiln_jit_core::build::{KernelBuilder, Val};
use kiln_jit_core::ir::Type;

use crate::function::{Applied, FunctionName, NodeFn};
use crate::input::{ArrayInput, Input, ScalarInput};
use crate::kept::Kept;
use crate::layout::Layout;
use crate::{Array, ArrayError, Arrays, Element, ElementFn, Shape, ShapeMismatch};

/// The most nodes of an expression, each counted wherever it is used: what a kernel can be made of.
const MAX_NODES: usize = 4096;

/// Why an expression cannot be computed, as far as is known when it is made.
#[derive(Clone, Debug)]
pub(crate) enum Unfit {
    /// Shapes of operands that do not go together.
    Shape(ShapeMismatch),
    /// An expression of more than [`MAX_NODES`] nodes.
    TooLarge,
    /// A dimension that is not there.
    Axis(isize, Shape),
    /// Indices of more elements than there are indices.
    ManyIndices(Shape),
    /// An operation on more elements than it has indices for.
    Many(&'static str, Shape),
    /// As many numbers as the array has dimensions are needed, and these are others.
    Items(usize, Shape),
    /// A weight of more elements than the array has along a dimension.
    Window(usize, usize, Shape),
    /// What an operation that is written there cannot do.
    At(Box<Unfit>, &'static Location<'static>),
}

impl Unfit {
    /// With the place of the operation, which whoever computes the expression, elsewhere, is told.
    pub(crate) fn at(self, place: &'static Location<'static>) -> Unfit {
        match self {
            Unfit::Shape(mismatch) => Unfit::Shape(mismatch.at(place)),
            unfit => Unfit::At(Box::new(unfit), place),
        }
    }
}

impl From<Unfit> for ArrayError {
    fn from(unfit: Unfit) -> ArrayError {
        match unfit {
            Unfit::Shape(mismatch) => mismatch.into(),
            Unfit::TooLarge => ArrayError::TooLarge { limit: MAX_NODES },
            Unfit::Axis(axis, shape) => ArrayError::Axis { axis, shape },
            Unfit::ManyIndices(shape) => ArrayError::ManyIndices { shape },
            Unfit::Many(operation, shape) => ArrayError::TooMany {
                operation,
                shape,
                most: u32::MAX as usize,
            },
            Unfit::Items(items, shape) => ArrayError::Items { items, shape },
            Unfit::Window(count, axis, shape) => ArrayError::Window { count, axis, shape },
            Unfit::At(unfit, at) => ArrayError::Operation {
                why: Box::new(ArrayError::from(*unfit)),
                at,
            },
        }
    }
}

/// What a node of an expression is.
pub(crate) enum Node {
    /// An array.
    Read {
        /// The buffer, as the kernel takes it.
        buffer: Arc<dyn Input>,
        /// Where the array's elements lie in it.
        layout: Layout,
    },
    /// Where elements would lie that have this layout: indices, as `u32`.
    Place(Layout),
    /// All of a buffer, as a slice, for a function that reads it where it likes.
    Whole(Arc<dyn Input>),
    /// A number from the host, a parameter of the kernel.
    Scalar(Arc<dyn Input>),
    /// A function of other nodes.
    Apply {
        /// The function.
        function: Arc<NodeFn>,
        /// What identifies the function; `None` when nothing does.
        name: Option<FunctionName>,
        /// The arguments of the function.
        args: Vec<Arc<Node>>,
        /// The type of the result.
        ty: fn(&KernelBuilder) -> Type,
        /// How the expression is evaluated, once it was.
        kept: OnceLock<Box<Kept>>,
    },
}

impl Drop for Node {
    /// Takes expressions apart one node after the other: as deep as they may be, a thread may have
    /// little stack.
    fn drop(&mut self) {
        let mut left = match self {
            Node::Apply { args, .. } => std::mem::take(args),
            Node::Read { .. } | Node::Place(_) | Node::Whole(_) | Node::Scalar(_) => return,
        };
        while let Some(node) = left.pop() {
            if let Some(mut node) = Arc::into_inner(node)
                && let Node::Apply { args, .. } = &mut node
            {
                left.append(args);
            }
        }
    }
}

/// An element-wise computation over arrays that has not happened yet. Cheap to clone.
///
/// ```
/// use kiln::prelude::*;
///
/// # fn main() -> kiln::Result<()> {
/// let arrays = Arrays::new(&Jit::new()?);
/// let x = arrays.vector(vec![1.0f64, 2.0])?;
/// let y: Expr<f64> = 1.0 - &x * &x;
/// let z = y.clone() / (y + 2.0); // one kernel, whatever it is made of
/// assert_eq!(z.eval()?.to_vec()?, [0.0, 3.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Expr<T: Element> {
    pub(crate) node: Arc<Node>,
    /// Where the expression is computed; `None` for a number alone.
    pub(crate) arrays: Option<Arrays>,
    /// The shape of the result, or the first thing that is wrong, which `eval` reports.
    pub(crate) shape: Result<Shape, Unfit>,
    /// Nodes, each counted wherever it is used.
    pub(crate) nodes: usize,
    element: PhantomData<T>,
}

impl<T: Element> std::fmt::Debug for Expr<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = std::any::type_name::<T>();
        match &self.shape {
            Ok(shape) => write!(f, "Expr<{name}>({shape})"),
            Err(unfit) => write!(f, "Expr<{name}>({})", ArrayError::from(unfit.clone())),
        }
    }
}

/// What can stand in an expression: arrays, expressions and numbers.
///
/// ```
/// use kiln::prelude::*;
///
/// fn mean(a: impl IntoExpr<f32>, b: impl IntoExpr<f32>) -> Expr<f32> {
///     (a.into_expr() + b.into_expr()) / 2.0
/// }
///
/// # fn main() -> kiln::Result<()> {
/// let arrays = Arrays::new(&Jit::new()?);
/// let x = arrays.vector(vec![1.0, 3.0])?;
/// assert_eq!(mean(&x, mean(&x, 7.0)).eval()?.to_vec()?, [2.5, 4.0]);
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot stand in an expression whose elements are `{T}`",
    label = "not an array or a number of `{T}`",
    note = "numbers have the type of the elements: `2.0` beside floats, `2` beside integers; others are converted \
            before, `n as {T}`"
)]
pub trait IntoExpr<T: Element> {
    /// As an expression.
    fn into_expr(self) -> Expr<T>;
}

#[diagnostic::do_not_recommend]
impl<T: Element> IntoExpr<T> for Expr<T> {
    fn into_expr(self) -> Expr<T> {
        self
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element> IntoExpr<T> for &Expr<T> {
    fn into_expr(self) -> Expr<T> {
        self.clone()
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element> IntoExpr<T> for &Array<T> {
    fn into_expr(self) -> Expr<T> {
        let node = Node::Read {
            buffer: Arc::new(ArrayInput(self.buffer.clone())),
            layout: self.layout.clone(),
        };
        let shape = Ok(self.shape().clone());
        Expr::new(node, 1, Some(self.arrays.clone()), shape)
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element> IntoExpr<T> for Array<T> {
    fn into_expr(self) -> Expr<T> {
        (&self).into_expr()
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element> IntoExpr<T> for T {
    fn into_expr(self) -> Expr<T> {
        let number = Node::Scalar(Arc::new(ScalarInput(self)));
        Expr::new(number, 1, None, Ok(Shape::default()))
    }
}

impl<T: Element> Expr<T> {
    pub(crate) fn new(
        node: Node,
        nodes: usize,
        arrays: Option<Arrays>,
        shape: Result<Shape, Unfit>,
    ) -> Self {
        Expr {
            node: Arc::new(node),
            arrays,
            shape,
            nodes,
            element: PhantomData,
        }
    }

    /// This expression as one of a type that the IR has as this one.
    pub(crate) fn retyped<U: Element>(self) -> Expr<U> {
        Expr {
            node: self.node,
            arrays: self.arrays,
            shape: self.shape,
            nodes: self.nodes,
            element: PhantomData,
        }
    }

    /// A function of these nodes, whose name, if it has one, says all about it. Where it is computed and its shape are to be said.
    pub(crate) fn applied(
        args: Vec<Arc<Node>>,
        name: Option<FunctionName>,
        f: impl for<'k> Fn(&[Val<'k>]) -> Val<'k> + Send + Sync + 'static,
    ) -> Expr<T> {
        let nodes = args.len() + 1;
        let node = Node::Apply {
            function: Arc::new(f),
            name,
            args,
            ty: |k| k.ty::<T>(),
            kept: OnceLock::new(),
        };
        Expr::new(node, nodes, None, Ok(Shape::default()))
    }

    /// An operation of this crate on one expression.
    pub(crate) fn unary<U: Element>(
        self,
        name: impl Into<Cow<'static, str>>,
        f: impl for<'k> Fn(Val<'k>) -> Val<'k> + Send + Sync + 'static,
    ) -> Expr<U> {
        self.map(ElementFn::operation(name, move |[x]| f(x)))
    }

    /// An operation of this crate on two expressions.
    #[track_caller]
    pub(crate) fn binary<R: Element, U: Element>(
        self,
        other: Expr<R>,
        name: &'static str,
        f: impl for<'k> Fn(Val<'k>, Val<'k>) -> Val<'k> + Send + Sync + 'static,
    ) -> Expr<U> {
        let f = ElementFn::operation(name, move |[a, b]| f(a, b));
        broadcast::<(T, R), U>((self, other), f)
    }

    /// Applies a function to every element. The result may be of another type.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// #[device_fn]
    /// fn smoothstep<T: Float>(x: T) -> T {
    ///     x * x * (T::from_f64(3.0) - T::from_f64(2.0) * x)
    /// }
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.vector(vec![0.0f32, 0.5, 1.0])?;
    /// assert_eq!(x.map(device!(smoothstep)).eval()?.to_vec()?, [0.0, 0.5, 1.0]);
    /// // What is captured is a parameter of the kernel: other values compile nothing.
    /// for scale in [1.0, 10.0] {
    ///     let y = x.map(device!(|v| smoothstep(v) * scale)).eval()?;
    ///     assert_eq!(y.to_vec()?[2], scale);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn map<U: Element>(self, f: ElementFn<(T,), U>) -> Expr<U> {
        broadcast((self,), f)
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

/// Applies a function of several arguments to every element of arrays, expressions and numbers whose
/// shapes go together, up to eight of them.
///
/// ```
/// use kiln::array::broadcast;
/// use kiln::prelude::*;
///
/// # fn main() -> kiln::Result<()> {
/// let arrays = Arrays::new(&Jit::new()?);
/// let (x, y) = (arrays.vector(vec![3.0f64, 5.0])?, arrays.vector(vec![4.0, 12.0])?);
/// let norm = broadcast((&x, &y), device!(|x, y| (x * x + y * y).sqrt()));
/// assert_eq!(norm.eval()?.to_vec()?, [5.0, 13.0]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn broadcast<Args, R: Element>(
    args: impl BroadcastArgs<Args>,
    f: ElementFn<Args, R>,
) -> Expr<R> {
    let Arguments {
        mut nodes,
        mut count,
        arrays,
        mut shape,
    } = args.into_arguments();
    let Applied {
        describe,
        name,
        captures,
    } = f.applied;
    nodes.extend(
        captures
            .into_iter()
            .map(|number| Arc::new(Node::Scalar(number))),
    );
    count = count.saturating_add(1);
    if count > MAX_NODES {
        // Nothing is computed of it, so nothing is kept of it.
        nodes.clear();
        shape = shape.and(Err(Unfit::TooLarge));
    }
    let node = Node::Apply {
        function: describe,
        name,
        args: nodes,
        ty: |k| k.ty::<R>(),
        kept: OnceLock::new(),
    };
    Expr::new(node, count, arrays, shape)
}

/// Tuples of what can stand in an expression, with the types of their elements.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tuple of arrays, expressions and numbers",
    note = "write `broadcast((&x, &y, 2.0), device!(|x, y, c| ..))`"
)]
pub trait BroadcastArgs<Args> {
    /// As one list.
    #[doc(hidden)]
    #[track_caller]
    fn into_arguments(self) -> Arguments;
}

/// The arguments of an element-wise function.
#[doc(hidden)]
pub struct Arguments {
    nodes: Vec<Arc<Node>>,
    /// Nodes of all of them together.
    count: usize,
    arrays: Option<Arrays>,
    shape: Result<Shape, Unfit>,
}

impl std::fmt::Debug for Arguments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Arguments({}, {:?})", self.nodes.len(), self.shape)
    }
}

impl Arguments {
    fn new() -> Self {
        Arguments {
            nodes: Vec::new(),
            count: 0,
            arrays: None,
            shape: Ok(Shape::default()),
        }
    }

    #[track_caller]
    fn with<T: Element>(mut self, arg: Expr<T>) -> Self {
        let place = Location::caller();
        self.shape = match (self.shape, arg.shape) {
            (Err(unfit), _) | (_, Err(unfit)) => Err(unfit),
            (Ok(a), Ok(b)) => a.broadcast(&b).map_err(|e| Unfit::Shape(e.at(place))),
        };
        self.count = self.count.saturating_add(arg.nodes);
        self.nodes.push(arg.node);
        self.arrays = self.arrays.or(arg.arrays);
        self
    }
}

macro_rules! tuples {
    ($($($ty:ident $arg:ident $position:tt)*;)*) => {$(
        impl<$($ty: Element, $arg: IntoExpr<$ty>),*> BroadcastArgs<($($ty,)*)> for ($($arg,)*) {
            #[track_caller]
            fn into_arguments(self) -> Arguments {
                Arguments::new()$(.with(self.$position.into_expr()))*
            }
        }
    )*};
}
tuples! {
    A X 0;
    A X 0 B Y 1;
    A X 0 B Y 1 C Z 2;
    A X 0 B Y 1 C Z 2 D W 3;
    A X 0 B Y 1 C Z 2 D W 3 E V 4;
    A X 0 B Y 1 C Z 2 D W 3 E V 4 F U 5;
    A X 0 B Y 1 C Z 2 D W 3 E V 4 F U 5 G T 6;
    A X 0 B Y 1 C Z 2 D W 3 E V 4 F U 5 G T 6 H S 7;
}
