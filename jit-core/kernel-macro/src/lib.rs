//! `#[kernel]`, `#[device_fn]`, `#[derive(KernelType)]` and `#[derive(KernelView)]`.
//!
//! The macros write what one could write by hand with the builder. A function body becomes two
//! things, in one function of the host (`kiln_jit_core::front` has the other half and says why):
//! the *checked copy*, the body as it was written, which rustc checks and infers types for and
//! nobody calls; and the *description*, its meaning as data that the front end evaluates
//! (`kiln_description`), each operation with the position of the user's own token, so that errors at
//! run time name the user's lines. What the data refers to is in its *pool*.
//!
//! | file | subject |
//! |---|---|
//! | `function` | the items that a function becomes |
//! | `method` | `impl` blocks |
//! | `itself` | `self` and `Self` |
//! | `traits` | traits, for the bodies that they have |
//! | `signature` | parameters, generics |
//! | `arguments` | what stands in the parentheses of Kiln's attributes: launch bounds, what hooks read |
//! | `attributes` | other attributes on a function: `inline`, those for rustc |
//! | `launch` | the launch whose arguments rustc checks |
//! | `checked` | the checked copy |
//! | `numbers` | which expressions are numbers by how they are written |
//! | `scan` | which variables need an address, which expressions only compute |
//! | `body` | statements and `let` |
//! | `expression` | expressions |
//! | `call` | calls, methods, macros |
//! | `chain` | chains of iterators |
//! | `dispatch` | type parameters with a trait of the user's as their bound |
//! | `assertion` | `const` blocks: static assertions |
//! | `closure` | closures, and the functions that take them |
//! | `flow` | `if`, loops, `break`, `return` |
//! | `pattern` | `match` and patterns |
//! | `types` | types |
//! | `derive` | `#[derive(KernelType)]` |
//! | `comparison` | comparisons of structs |
//! | `view` | `#[derive(KernelView)]` |
//! | `elementwise` | `device!(..)` |
//! | `names` | what names mean |
//! | `pool` | what descriptions refer to |
//! | `position` | where in the user's source |
//! | `refusal` | what is refused, and what to write instead |
//!
//! What a kernel cannot say is refused with the span of the token and a sentence that says what to
//! write instead. The macros never panic; `fuzz` feeds them token soup.
#![forbid(unsafe_code)]

mod arguments;
mod assertion;
mod attributes;
mod body;
mod call;
mod chain;
mod checked;
mod closure;
mod comparison;
mod condition;
mod conversion;
mod derive;
mod dispatch;
mod elementwise;
mod expression;
mod fixed;
mod flow;
mod function;
#[cfg(test)]
mod fuzz;
mod items;
mod itself;
mod launch;
mod lifetimes;
mod method;
mod names;
mod numbers;
mod option;
mod panic;
mod pattern;
#[cfg(test)]
mod placed;
mod pool;
mod position;
mod print;
mod promoted;
mod ranges;
mod refusal;
mod scan;
mod signature;
mod stand;
mod traits;
mod types;
mod view;
#[cfg(test)]
mod written;

use function::Kind;
use proc_macro::TokenStream;

#[doc = include_str!("../docs/kernel.md")]
#[proc_macro_attribute]
pub fn kernel(attribute: TokenStream, item: TokenStream) -> TokenStream {
    function::expand(Kind::Kernel, attribute.into(), item.into()).into()
}

/// What `kiln::kernel_expr!` expands to.
#[doc(hidden)]
#[proc_macro]
pub fn kernel_expression(tokens: TokenStream) -> TokenStream {
    function::expand_expression(tokens.into()).into()
}

#[doc = include_str!("../docs/device_fn.md")]
#[proc_macro_attribute]
pub fn device_fn(attribute: TokenStream, item: TokenStream) -> TokenStream {
    function::expand(Kind::Device, attribute.into(), item.into()).into()
}

/// What `kiln::device!` expands to.
#[doc(hidden)]
#[proc_macro]
pub fn device_expression(tokens: TokenStream) -> TokenStream {
    elementwise::expand(tokens.into()).into()
}

#[doc = include_str!("../docs/kernel_view.md")]
#[proc_macro_derive(KernelView)]
pub fn derive_kernel_view(item: TokenStream) -> TokenStream {
    view::expand(item.into()).into()
}

/// Makes a `#[repr(C)]` struct a type that kernels can hold, or an enum without fields and with a
/// `#[repr(u8)]` to `#[repr(i64)]` one that kernels can compute with.
///
/// `#[repr(C, align(16))]` aligns each value of the struct; to 16 bytes at most, which is the most that a thread reads at once.
#[proc_macro_derive(KernelType)]
pub fn derive_kernel_type(item: TokenStream) -> TokenStream {
    derive::expand(item.into()).into()
}
