//! The body of a function as data: what the macros write and the front end reads.
//!
//! A `#[kernel]` function is translated by `kernel-macro` while the user's crate is compiled, and
//! described to the builder by `kiln_jit_core::front` when the program runs. What goes from one to
//! the other is a string of bytes, as rustc compiles a literal in no time, where it would have to
//! resolve, check and compile each of the builder's calls. This crate is the form of these bytes, for
//! both sides.
//!
//! The form is prefix code: an [`Op`] followed by its operands, which are expressions, types
//! ([`TypeOp`]), numbers and texts. Evaluating it from left to right is describing the function;
//! [`text()`] shows it.
//!
//! - What is evaluated later, several times or never is a *region*, which has its length before it.
//! - Variables are numbered. The macro has resolved their names, hygiene included.
//! - What only rustc can tell, as types, constants and functions by their paths, is in the function's
//!   *pool*, an array that the generated code has beside the bytes, and is referred to by its number.
//! - An operation may have its place in the user's source, relative to the first line of the function;
//!   one that has none is where the operation around it is.
//!
//! [`Code`] writes it and [`Reader`] reads it. Both crates are of one version, so the form has none; a
//! reader that gets other bytes ends, with another meaning, but without a panic.
#![forbid(unsafe_code)]

mod code;
mod op;
mod read;
mod text;

pub use code::Code;
pub use op::{Len, Op, TypeOp, When};
pub use read::{Header, Reader, Region};
pub use text::text;

/// A place in a source file: its line, relative to the first of the function, and its column,
/// counted from 1.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct LineColumn {
    /// The line, relative to the function's.
    pub line: i32,
    /// The column, in characters.
    pub column: u32,
}

/// The number that stands for the name of a method in types (FNV-1a, 64 bits).
pub const fn method_name(name: &str) -> u64 {
    let bytes = name.as_bytes();
    let (mut hash, mut at) = (0xcbf2_9ce4_8422_2325_u64, 0);
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(0x0100_0000_01b3);
        at += 1;
    }
    hash
}
