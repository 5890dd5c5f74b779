//! Changing functions of a module: where hooks put code in, take code out, and move what uses it.
//!
//! | what | for |
//! |---|---|
//! | [`Cursor`] | a walk over a function that changes it on the way, at the cost of the walk |
//! | [`InstBuilder`] | one new instruction at the cursor, whose result type follows from its operands |
//! | [`Function::uses`], [`Function::replace_uses`], [`Function::erase`] | one change of a function, at the cost of a walk each |
//! | [`Function::copy_inst`], [`Module::clone_function`], [`Module::link`] | copies of code, and functions as a whole |
//! | [`Module::inline_calls`], [`Module::remove_functions`] | bodies in place of calls |
//! | [`Module::call_before_faults`] | what a thread does before a fault ends it |
//!
//! Nothing here checks what it is given: a function that is wrong afterwards is told by the
//! [verifier](crate::verify()), which runs after every hook and names it.

mod builder;
mod copy;
mod cursor;
mod faults;
mod inline;
mod uses;

pub use builder::{InstBuilder, Literal};
pub use copy::{InstCopy, LinkError};
pub use cursor::Cursor;
pub use faults::NoFaultFunction;
pub use uses::{StillUsed, Use};
