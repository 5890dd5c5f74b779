//! What can be wrong with the use of a builder, each with the Rust lines that are to blame.
//!
//! A builder never panics on wrong use and never stops at the first mistake: it notes the error,
//! goes on with a zero of the right type, and reports everything when the function is finished.

use std::fmt;

use crate::ir::{debug_as_text, error_text, first_of, shortened, write_rest};

/// Everything that was wrong with the description of one function.
#[derive(Clone, PartialEq, Eq)]
pub struct BuildErrors {
    /// The function being built.
    pub function: String,
    /// The errors, in the order they were met. Never empty.
    pub errors: Vec<BuildError>,
}

debug_as_text!(BuildErrors);

impl fmt::Display for BuildErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&error_text!("{}", Whole(self)))
    }
}

/// The text, whole.
struct Whole<'a>(&'a BuildErrors);

impl fmt::Display for Whole<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BuildErrors { function, errors } = self.0;
        let n = errors.len();
        let s = if n == 1 { "" } else { "s" };
        write!(f, "`{function}` cannot be built: {n} error{s}")?;
        for error in first_of(errors) {
            // What is wrong with a callee has lines of its own.
            let text = error.to_string();
            let lines: Vec<_> = text.lines().map(shortened).collect();
            write!(f, "\n  {}", lines.join("\n"))?;
        }
        write_rest(f, errors)
    }
}

impl std::error::Error for BuildErrors {}

/// One wrong use of a builder.
#[derive(Clone, PartialEq, Eq)]
pub struct BuildError {
    /// What is wrong.
    pub kind: BuildErrorKind,
    /// The line of Rust that did it, as `file:line:column`.
    pub at: String,
}

debug_as_text!(BuildError);

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&error_text!("{}: {}", self.at, self.kind))
    }
}

/// What is wrong. Types are in the IR's notation; `*_at` are lines of Rust.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildErrorKind {
    /// Two operands must have one type and do not.
    #[error("{}", error_text!(
        "`{operation}` needs two operands of one type: the left one is `{left}` (built at \
         {left_at}), the right one is `{right}` (built at {right_at}); convert one with `.cast(..)`"
    ))]
    TypeMismatch {
        /// The operation.
        operation: String,
        /// Type of the left operand.
        left: String,
        /// Where the left operand was built.
        left_at: String,
        /// Type of the right operand.
        right: String,
        /// Where the right operand was built.
        right_at: String,
    },
    /// A value is of a type that the operation does not take.
    #[error("{}", error_text!("{operation} needs {expected}, but the value built at {value_at} is `{found}`"))]
    WrongType {
        /// The operation.
        operation: String,
        /// The types that the operation takes.
        expected: String,
        /// The type of the value.
        found: String,
        /// Where the value was built.
        value_at: String,
    },
    /// A value is used where it does not exist.
    #[error("{}", error_text!(
        "the value built at {value_at} belongs to {scope}, which has ended; declare a variable \
         with `var` before it, `set` it inside and use it here"
    ))]
    OutOfScope {
        /// Where the value was built.
        value_at: String,
        /// The region it belongs to.
        scope: String,
    },
    /// A value of another builder is used.
    #[error("{}", error_text!("this value belongs to `{owner}`, not to `{user}`; pass it as a parameter"))]
    ForeignValue {
        /// The function it was built in.
        owner: String,
        /// The function it is used in.
        user: String,
    },
    /// A literal has no exact counterpart in the type asked for.
    #[error("{}", error_text!("the literal {literal} is not a value of `{ty}`; {hint}"))]
    Literal {
        /// The literal.
        literal: String,
        /// The type it should have.
        ty: String,
        /// What to write instead.
        hint: &'static str,
    },
    /// `break` or `continue` without a loop around it.
    #[error("{}", error_text!("`{what}` is not inside a loop of `{function}`"))]
    NoLoop {
        /// `break` or `continue`.
        what: &'static str,
        /// The function.
        function: String,
    },
    /// A write through something read-only.
    #[error("{}", error_text!("{what} is read-only; declare the parameter it comes from with `{declare}`"))]
    ReadOnly {
        /// What would be written.
        what: String,
        /// How to declare it.
        declare: &'static str,
    },
    /// No such field.
    #[error("{}", error_text!("`{ty}` has no field `{field}`; it has {fields}"))]
    NoField {
        /// The struct.
        ty: String,
        /// The field asked for.
        field: String,
        /// The fields there are.
        fields: String,
    },
    /// A wrong number of arguments or parts.
    #[error("{}", error_text!("{what} takes {expected}, not {found}"))]
    Count {
        /// What is called or made.
        what: String,
        /// How many it takes.
        expected: usize,
        /// How many it was given.
        found: usize,
    },
    /// A type or const parameter of a callee that its arguments do not determine.
    #[error("{}", error_text!(
        "`{callee}` (defined at {callee_at}) has a parameter `{parameter}` that no argument \
         determines; give it with `call_with`"
    ))]
    NotInferred {
        /// The function called.
        callee: String,
        /// Where the callee is defined.
        callee_at: String,
        /// The parameter.
        parameter: String,
    },
    /// A device function that is called cannot be described.
    #[error("{}", error_text!("`{callee}`, which is called here, cannot be used: {error}"))]
    Callee {
        /// The function called.
        callee: String,
        /// What is wrong with it.
        error: String,
    },
    /// Something that kernels written in Rust cannot do with this value.
    #[error("{}", error_text!("{}", .0))]
    Unsupported(String),
    /// Two parameters of one name, or a declaration that comes too late.
    #[error("{}", error_text!("{}", .0))]
    Declaration(String),
    /// An intrinsic does not accept its arguments.
    #[error("{}", error_text!("{}", .0))]
    Intrinsic(String),
    /// `else_` on an `if_` that is not the last thing built.
    #[error("`else_` must follow its `if_` at once")]
    DetachedElse,
}

debug_as_text!(BuildErrorKind);
