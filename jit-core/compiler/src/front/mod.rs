//! The run-time half of `#[kernel]`: what the macro's code calls.
//!
//! The macro writes three things from one Rust function, in one function of the host:
//!
//! - the *checked copy*: the body as it was written, in a closure that is never called. rustc infers
//!   its types and reports what is wrong with it. Each literal without a suffix goes through a
//!   [`TypeOf`], which is how its type gets out of the copy;
//! - the *description*: the body as bytes ([`kiln_description`]), which `describe` evaluates to calls
//!   of [`Front`] on [`Operand`]s, whose IR types are known by then. That happens once, at the first
//!   use of the kernel, with each type parameter standing for itself (`Param`), so the kernel stays
//!   generic in the IR;
//! - the *pool*: what the description refers to by number, as only rustc can tell what it is: types,
//!   constants, functions.
//!
//! | file | subject |
//! |---|---|
//! | `face` | the builder as the macro's code sees it |
//! | `description` | evaluates descriptions |
//! | `pool` | entries of the pool |
//! | `operand` | what an expression is: a value, a variable, a place, a literal; reading, fields, elements |
//! | `binding` | `let`, parameters, constants, structs, shared memory |
//! | `flow` | `if`, `match`, loops, `return` |
//! | `range` | the ranges a `for` goes over |
//! | `option` | values that may be there or not |
//! | `result` | values, or what went wrong |
//! | `reference` | which reference stands for which, and what they become where several meet |
//! | `function` | kernels and device functions that are described at their first use; calls |
//! | `method` | what a method is applied to |
//! | `host_mem` | `std::mem::swap` and its kind |
//! | `built` | calls by the builder |
//! | `inline` | functions that take closures, described in place of their calls |
//! | `converted` | conversions that may fail |
//! | `slice` | what methods of slices and arrays do |
//! | `types` | types on their way from rustc to the IR |
//!
//! Nothing here is `#[track_caller]`: evaluating an operation sets the builder's position. (A pointer to a
//! function that is would be one to a shim, and the shim's target is a hidden symbol to the cells of a
//! notebook, which share Kiln as a `dylib`.)
//!
//! Programs name kernels of the macro by [`LazyKernel`] and [`AsKernel`]; rustc names the traits of functions
//! ([`Callable`], [`CallableFn`], [`Inlinable`]) where one is no function of kernels. All else is public because
//! macros write it into other crates, by the hidden module `macros`; hand-written code has [`crate::build`]. It
//! upholds the same rule: what it builds reaches no memory it was not given. Pointers are made of places only, and
//! live as long as those because the checked copy is borrow-checked.

mod binding;
mod built;
mod compared;
mod converted;
mod declared;
mod description;
mod elements;
mod face;
mod flow;
mod function;
#[doc(hidden)]
pub mod host_mem;
mod inline;
mod items;
mod method;
mod operand;
mod option;
mod pool;
mod printed;
mod range;
mod reference;
mod result;
mod slice;
mod types;

use face::Front;
use inline::{Closure, InlineCall};
use method::Receiver;
use operand::Operand;
use pool::Pooled;
use types::TypeOf;

pub use built::BuiltClosure;
pub use function::{AsKernel, Callable, CallableFn, LazyKernel};
pub use inline::Inlinable;

/// What the code that `#[kernel]` and its kind write refers to, and what Kiln's library has for that code: no
/// program names it, and any version may change it.
#[doc(hidden)]
pub mod macros {
    pub use super::declared::{Declared, Undeclared};
    pub use super::description::{describe, describe_closure, describe_inline};
    pub use super::face::Front;
    pub use super::function::{
        AnyFunction, Callable, CallableFn, Described, DescribedFn, DescribedMethod, LazyDeviceFn,
        LazyDeviceFns, LazyKernel, LazyKernels, not_for_kernels,
    };
    pub use super::host_mem;
    pub use super::inline::{Closure, Inlinable, InlineCall};
    pub use super::method::Receiver;
    pub use super::operand::{Fields, Operand};
    pub use super::pool::{CallFn, InlineFn, Named, Pooled};
    pub use super::slice::End;
    pub use super::types::{InKernels, Param, Receives, TypeOf, of};
    pub use crate::value::comparison::*;
    pub use kiln_description::method_name;
}
