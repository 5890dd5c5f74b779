//! The run-time half of `#[kernel]`: what the macro's code calls.
//!
//! The macro writes three things from one Rust function, in one function of the host:
//!
//! - the *checked copy*: the body as it was written, in a closure that is never called. rustc infers
//!   its types and reports what is wrong with it. Each literal without a suffix goes through a
//!   [`TypeOf`], which is how its type gets out of the copy;
//! - the *description*: the body as bytes ([`kiln_description`]), which [`describe()`] evaluates to calls
//!   of [`Front`] on [`Operand`]s, whose IR types are known by then. That happens once, at the first
//!   use of the kernel, with each type parameter standing for itself ([`Param`]), so the kernel stays
//!   generic in the IR;
//! - the *pool*: what the description refers to by number, as only rustc can tell what it is: types,
//!   constants, functions.
//!
//! | file | subject |
//! |---|---|
//! | `description` | evaluates descriptions |
//! | `pool` | entries of the pool |
//! | `operand` | what an expression is: a value, a variable, a place, a literal; reading, fields, elements |
//! | `binding` | `let`, parameters, constants, structs, shared memory |
//! | `flow` | `if`, `match`, loops, `return` |
//! | `range` | the ranges a `for` goes over |
//! | `reference` | which reference stands for which, and what they become where several meet |
//! | `function` | kernels and device functions that are described at their first use; calls |
//! | `method` | what a method is applied to |
//! | `inline` | functions that take closures, described in place of their calls |
//! | `types` | types on their way from rustc to the IR |
//!
//! Nothing here is `#[track_caller]`: evaluating an operation sets the builder's position. (A pointer to a
//! function that is would be one to a shim, and the shim's target is a hidden symbol to the cells of a
//! notebook, which share Kiln as a `dylib`.)
//!
//! Nothing here is for hand-written code, which has [`crate::build`]; it is public because macros
//! write it into other crates. It upholds the same rule: what it builds reaches no memory it was
//! not given. Pointers are made of places only, and live as long as those because the checked copy
//! is borrow-checked.

mod binding;
mod declared;
mod description;
mod flow;
mod function;
mod inline;
mod method;
mod operand;
mod pool;
mod range;
mod reference;
mod types;

use crate::build::KernelBuilder;

pub use declared::{Declared, Undeclared};
pub use description::{describe, describe_closure, describe_inline};
pub use function::{
    AsKernel, Callable, CallableFn, Described, DescribedFn, DescribedMethod, LazyDeviceFn,
    LazyKernel, not_for_kernels,
};
pub use inline::{Closure, Inlinable, InlineCall};
#[doc(hidden)]
pub use kiln_description::method_name;
pub use method::Receiver;
pub use operand::{Fields, Operand};
pub use pool::{CallFn, InlineFn, Named, Pooled};
pub use types::{Param, TypeOf, of};

/// Describes one function; a builder as the macro's code sees it.
#[derive(Copy, Clone)]
pub struct Front<'k> {
    builder: &'k KernelBuilder,
}

impl<'k> Front<'k> {
    /// The face of this builder.
    pub fn new(builder: &'k KernelBuilder) -> Self {
        Front { builder }
    }

    /// The builder.
    pub fn builder(self) -> &'k KernelBuilder {
        self.builder
    }
}
