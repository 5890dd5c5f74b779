//! Functions of elements: what `map`, `broadcast` and `reduce` apply.
//!
//! `device!(..)` writes one from a function or a closure of Rust; [`ElementFn::build`] takes one that is
//! written with the builder. Either way it is a description, which becomes part of a kernel, and the
//! numbers that it captures, which become parameters of the kernel.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;

use kiln_jit_core::build::{KernelBuilder, Val};
use kiln_jit_core::front::macros::{Front, Operand};
use kiln_jit_core::value::KernelType;

use crate::input::{Input, ScalarInput};
use crate::neighbor::Near;

/// A computation on values of a kernel.
pub(crate) type NodeFn = dyn for<'k> Fn(&[Val<'k>]) -> Val<'k> + Send + Sync;

/// A function of elements that becomes part of kernels, with the types of its arguments, `(A, B)`, and
/// of its result. Cheap to clone.
///
/// `device!(gelu)` makes one of a `#[device_fn]`, `device!(|x| gelu(x) * scale)` of a closure;
/// [`ElementFn::build`] of a closure over values of the builder.
pub struct ElementFn<Args, R> {
    pub(crate) applied: Applied,
    types: PhantomData<fn(Args) -> R>,
}

/// An [`ElementFn`] without its types.
#[derive(Clone)]
pub(crate) struct Applied {
    /// Describes the result for the arguments, followed by the captured numbers.
    pub(crate) describe: Arc<NodeFn>,
    /// What identifies the description; `None` when nothing does.
    pub(crate) name: Option<FunctionName>,
    /// The captured numbers.
    pub(crate) captures: Vec<Arc<dyn Input>>,
}

impl Applied {
    /// Declares the captured numbers as parameters of a kernel.
    pub(crate) fn declare<'k>(&self, k: &'k KernelBuilder) -> Vec<Val<'k>> {
        let captures = self.captures.iter().enumerate();
        captures
            .map(|(n, capture)| capture.declare(k, &format!("by{n}")))
            .collect()
    }
}

/// What identifies a description, for values of given types.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum FunctionName {
    /// An operation of this crate.
    Operation(Cow<'static, str>),
    /// The operation that reads a neighbour.
    Neighbor(Near),
    /// A closure that holds nothing, by the address of its code, which stays where it is: what is
    /// `'static` is not unloaded. Closures that share an address do the same, as a linker or LLVM makes
    /// one function of two only where they are equal down to what they call; two that the source has
    /// under one name, in libraries of one process, lie at two. A type, as of what is captured, is no
    /// part of code that only hands it on, so it is no part of this name.
    Closure(usize),
}

/// How many additions a function is taken for of which no more is known.
pub(crate) const LONG: usize = 8;

/// Operations of an instruction or two, as far as names tell; conversions, whose names have a type behind, are more.
const SHORT: [&str; 23] = [
    "abs", "add", "bitand", "bitor", "bitxor", "eq", "ge", "gt", "indexed", "le", "lt", "max",
    "maximum", "min", "minimum", "mul", "ne", "neg", "not", "shl", "shr", "sub", "where",
];

impl FunctionName {
    /// What the function takes in a kernel, counted in additions: roots, quotients and what else may be of many
    /// instructions, as what a user describes, [`LONG`].
    pub(crate) fn weight(&self) -> usize {
        match self {
            FunctionName::Operation(name) if name.starts_with("cast ") => 1,
            FunctionName::Operation(name) if SHORT.contains(&&**name) => 1,
            FunctionName::Operation(_) | FunctionName::Neighbor(_) | FunctionName::Closure(_) => {
                LONG
            }
        }
    }

    /// Whether the function is an operation of this crate, which takes an `f32` for a half.
    pub(crate) fn is_own(&self) -> bool {
        !matches!(self, FunctionName::Closure(_))
    }

    /// The name of a closure with this code, if the code says all about it.
    fn of_closure<F: 'static>(code: usize) -> Option<FunctionName> {
        (size_of::<F>() == 0).then_some(FunctionName::Closure(code))
    }
}

impl<Args, R> Clone for ElementFn<Args, R> {
    fn clone(&self) -> Self {
        ElementFn::new(self.applied.clone())
    }
}

impl<Args, R> std::fmt::Debug for ElementFn<Args, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let signature = std::any::type_name::<fn(Args) -> R>();
        write!(f, "ElementFn<{signature}>({:?})", self.applied.name)
    }
}

impl<Args, R> ElementFn<Args, R> {
    fn new(applied: Applied) -> Self {
        ElementFn {
            applied,
            types: PhantomData,
        }
    }

    /// A function of `N` values of the builder. It runs while a kernel is described; its result has to
    /// be of the IR type of `R`, or describing the kernel is an error. A closure that captures something
    /// is described anew each time that an expression with it is computed; its code is still found in
    /// the cache.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.vector(vec![1.0f32, 5.0])?;
    /// let excess: ElementFn<(f32, f32), f32> = ElementFn::build(|[x, limit]| (x - limit).max(0.0));
    /// assert_eq!(broadcast((&x, 2.0), excess).eval()?.to_vec()?, [0.0, 3.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn build<const N: usize, F>(f: F) -> Self
    where
        Args: Arity<N>,
        F: for<'k> Fn([Val<'k>; N]) -> Val<'k> + Send + Sync + 'static,
    {
        fn code<'k, const N: usize, F: Fn([Val<'k>; N]) -> Val<'k>>(
            f: &F,
            args: &[Val<'k>],
        ) -> Val<'k> {
            let first = args[0];
            f(std::array::from_fn(|i| {
                args.get(i).copied().unwrap_or(first)
            }))
        }
        let address = code::<N, F> as fn(&F, &[Val<'static>]) -> Val<'static>;
        let name = FunctionName::of_closure::<F>(address as usize);
        ElementFn::new(Applied {
            describe: Arc::new(move |args| code(&f, args)),
            name,
            captures: Vec::new(),
        })
    }

    /// An operation of this crate.
    pub(crate) fn operation<const N: usize, F>(name: impl Into<Cow<'static, str>>, f: F) -> Self
    where
        Args: Arity<N>,
        F: for<'k> Fn([Val<'k>; N]) -> Val<'k> + Send + Sync + 'static,
    {
        let mut function = Self::build(f);
        function.applied.name = Some(FunctionName::Operation(name.into()));
        function
    }

    /// What `device!` makes of a function: `host` is the one that rustc checks, which is not called
    /// here.
    #[doc(hidden)]
    pub fn of<F, D>(_host: F, describe: D) -> Self
    where
        F: HostFn<Args, R>,
        D: for<'k> Fn(Front<'k>, &[Operand<'k>]) -> Operand<'k> + Send + Sync + 'static,
    {
        Self::described(Vec::new(), describe)
    }

    fn described<D>(captures: Vec<Capture>, describe: D) -> Self
    where
        D: for<'k> Fn(Front<'k>, &[Operand<'k>]) -> Operand<'k> + Send + Sync + 'static,
    {
        fn code<'k, D>(describe: &D, args: &[Val<'k>]) -> Val<'k>
        where
            D: Fn(Front<'k>, &[Operand<'k>]) -> Operand<'k>,
        {
            // There is at least one argument: `HostFn` begins there.
            let front = Front::new(args[0].builder());
            let args: Vec<Operand<'k>> = args.iter().map(|arg| front.value(*arg)).collect();
            describe(front, &args).read()
        }
        let address = code::<D> as fn(&D, &[Val<'static>]) -> Val<'static>;
        let name = FunctionName::of_closure::<D>(address as usize);
        ElementFn::new(Applied {
            describe: Arc::new(move |args| code(&describe, args)),
            name,
            captures: captures.into_iter().map(|capture| capture.0).collect(),
        })
    }
}

/// Tuples of types by how many there are.
pub trait Arity<const N: usize> {}

/// A function of the host with these arguments: what a path in `device!(..)` names.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a function of elements of the types `{Args}`",
    label = "expected a function that takes `{Args}`",
    note = "`map` takes functions of one argument, `reduce` of two, and `broadcast` of as many as there \
            are arrays and numbers"
)]
pub trait HostFn<Args, R> {}

/// A number of the host that a closure for devices uses: a parameter of the kernels that it is in.
#[doc(hidden)]
pub struct Capture(Arc<dyn Input>);

impl std::fmt::Debug for Capture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Capture")
    }
}

/// What a closure in `device!(..)` can capture.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a closure for a device cannot capture a `{Self}`",
    label = "it is a parameter of the kernel, which takes no `{Self}`",
    note = "captured are numbers, `bool`, fixed arrays and `#[derive(KernelType)]` structs; of a `usize` \
            capture a `u32`; further arrays are arguments: \
            `broadcast((&x, &y), device!(|x, y| ..))`"
)]
pub trait Captured {
    /// As a parameter.
    fn captured(&self) -> Capture;
}

impl<T: KernelType> Captured for T {
    fn captured(&self) -> Capture {
        Capture(Arc::new(ScalarInput(*self)))
    }
}

/// What `device!` makes of closures, by the number of arguments; `describe` gets these, then what is
/// captured. The host's closure is a trait object so that rustc infers its types from where the result
/// is used: it looks through the result's type into the types of parameters, but not into bounds.
macro_rules! arities {
    ($($count:literal $closure:ident: $($arg:ident)*;)*) => {$(
        impl<$($arg),*> Arity<$count> for ($($arg,)*) {}

        impl<$($arg,)* R, F: Fn($($arg),*) -> R> HostFn<($($arg,)*), R> for F {}

        #[doc(hidden)]
        pub fn $closure<$($arg,)* R, D>(
            captures: Vec<Capture>,
            _host: &dyn Fn($($arg),*) -> R,
            describe: D,
        ) -> ElementFn<($($arg,)*), R>
        where
            D: for<'k> Fn(Front<'k>, &[Operand<'k>]) -> Operand<'k> + Send + Sync + 'static,
        {
            ElementFn::described(captures, describe)
        }
    )*};
}
arities! {
    1 closure1: A;
    2 closure2: A B;
    3 closure3: A B C;
    4 closure4: A B C D0;
    5 closure5: A B C D0 E;
    6 closure6: A B C D0 E G;
    7 closure7: A B C D0 E G H;
    8 closure8: A B C D0 E G H I;
}
