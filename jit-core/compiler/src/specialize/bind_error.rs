//! What can be wrong with the arguments of a launch.
//!
//! Each error names the kernel, the argument by position and name, and the line that declared the
//! parameter, so that it can be read without the kernel at hand.
//! Arguments are counted from 1 in texts and from 0 in fields.

use std::fmt;

use crate::ir::{debug_as_text, error_text};

/// Which argument an error is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArgumentPlace {
    /// The kernel.
    pub kernel: String,
    /// The position of the argument; the first is 0.
    pub position: usize,
    /// The name of its parameter.
    pub name: String,
    /// Where the parameter is declared, as `file:line:column`.
    pub declared_at: String,
}

impl fmt::Display for ArgumentPlace {
    /// Counts arguments from 1.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ArgumentPlace {
            kernel,
            position,
            name,
            declared_at,
        } = self;
        f.write_str(&error_text!(
            "argument {} (`{name}`, declared at {declared_at}) of kernel `{kernel}`",
            position + 1
        ))
    }
}

/// Launch arguments that do not fit a kernel. Locations are `file:line:column`.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// The wrong number of arguments.
    #[error("{}", error_text!(
        "kernel `{kernel}` (declared at {declared_at}) takes {} ({}), {}{}",
        count(params.len(), "argument"),
        params.join(", "),
        passed(*given),
        views(params)
    ))]
    Count {
        /// The kernel.
        kernel: String,
        /// The names of its parameters.
        params: Vec<String>,
        /// How many arguments were passed.
        given: usize,
        /// Where the kernel is declared.
        declared_at: String,
    },
    /// A value where a slice is expected, or the like.
    #[error("{}", error_text!("{at} must be {expected}, {given} was passed: {fix}"))]
    Kind {
        /// The argument.
        at: Box<ArgumentPlace>,
        /// What the kernel takes.
        expected: String,
        /// What was passed.
        given: String,
        /// What to pass instead.
        fix: &'static str,
    },
    /// An argument of another type.
    #[error("{}", error_text!("{at} must be {expected}, {given} was passed: convert it, or change the kernel"))]
    Mismatch {
        /// The argument.
        at: Box<ArgumentPlace>,
        /// What the kernel takes.
        expected: String,
        /// What was passed.
        given: String,
    },
    /// A part of a view that has another name than what it would be for.
    #[error("{}", error_text!(
        "{at} would be the field `{field}` of what was passed: pass what becomes the view that the kernel declares, \
         whose fields have the same names in the same order"
    ))]
    Field {
        /// The argument.
        at: Box<ArgumentPlace>,
        /// The field that was passed.
        field: &'static str,
    },
    /// A read-only slice or pointer for a parameter that the kernel may write through.
    #[error("{}", error_text!("{at} is written by the kernel, it was passed read-only: pass `&mut`"))]
    ReadOnly {
        /// The argument.
        at: Box<ArgumentPlace>,
    },
    /// Two arguments ask for different types of one type parameter.
    #[error("{}", error_text!(
        "`{param}` would be both `{first_type}` and `{second_type}`: {second} disagrees with \
         argument {} (`{}`): pass both with one type",
        first.position + 1,
        first.name
    ))]
    TypeConflict {
        /// The type parameter.
        param: String,
        /// The argument that bound it.
        first: Box<ArgumentPlace>,
        /// To what.
        first_type: String,
        /// The argument that disagrees.
        second: Box<ArgumentPlace>,
        /// The type that the second argument asks for.
        second_type: String,
    },
    /// Two values for one const parameter.
    #[error("{}", error_text!(
        "`{param}` would be both {first} and {second}: {at} has an array of {second}, but {source_of_first} \
         gives {first}: make them agree"
    ))]
    ConstConflict {
        /// The const parameter.
        param: String,
        /// Where the first value came from.
        source_of_first: String,
        /// The first value.
        first: i128,
        /// The argument that disagrees.
        at: Box<ArgumentPlace>,
        /// The value that the second argument asks for.
        second: i128,
    },
    /// A type parameter bound to something that it excludes.
    #[error("{}", error_text!("`{param}` must be {bound}, {at} makes it `{ty}`: pass {bound}"))]
    Bound {
        /// The type parameter.
        param: String,
        /// What the type must be.
        bound: &'static str,
        /// The argument that bound it.
        at: Box<ArgumentPlace>,
        /// To what.
        ty: String,
    },
    /// A type parameter that occurs in no parameter's type.
    #[error("{}", error_text!(
        "no argument of kernel `{kernel}` (declared at {declared_at}) says what `{param}` is: use \
         `{param}` in the type of a parameter"
    ))]
    UnboundType {
        /// The kernel.
        kernel: String,
        /// The type parameter.
        param: String,
        /// Where the kernel is declared.
        declared_at: String,
    },
    /// A const parameter without a value.
    #[error("{}", error_text!(
        "the const parameter `{param}: {ty}` of kernel `{kernel}` (declared at {declared_at}) has \
         no value: give it by name, as the const argument `(\"{param}\", value)`"
    ))]
    UnboundConst {
        /// The kernel.
        kernel: String,
        /// The const parameter.
        param: String,
        /// The parameter's type.
        ty: String,
        /// Where the kernel is declared.
        declared_at: String,
    },
    /// A const argument for a const parameter that does not exist.
    #[error("{}", error_text!(
        "kernel `{kernel}` (declared at {declared_at}) has no const parameter `{name}`: {}",
        known(const_params)
    ))]
    UnknownConst {
        /// The kernel.
        kernel: String,
        /// The name given.
        name: String,
        /// The names there are.
        const_params: Vec<String>,
        /// Where the kernel is declared.
        declared_at: String,
    },
    /// Two const arguments of one name.
    #[error("{}", error_text!(
        "the const argument `{name}` of kernel `{kernel}` (declared at {declared_at}) was given \
         twice: give it once"
    ))]
    DuplicateConst {
        /// The kernel.
        kernel: String,
        /// The name.
        name: String,
        /// Where the kernel is declared.
        declared_at: String,
    },
    /// A value that the const parameter's type does not have.
    #[error("{}", error_text!(
        "the const parameter `{param}: {ty}` of kernel `{kernel}` (declared at {declared_at}) \
         cannot be {value}: give a value of `{ty}`"
    ))]
    ConstRange {
        /// The kernel.
        kernel: String,
        /// The const parameter.
        param: String,
        /// The parameter's type.
        ty: &'static str,
        /// The value given.
        value: i128,
        /// Where the kernel is declared.
        declared_at: String,
    },
}

debug_as_text!(BindError);

fn count(n: usize, thing: &str) -> String {
    format!("{n} {thing}{}", if n == 1 { "" } else { "s" })
}

fn passed(n: usize) -> String {
    format!("{n} {} passed", if n == 1 { "was" } else { "were" })
}

/// How the parameters that are fields of views are passed.
fn views(params: &[String]) -> String {
    let mut names: Vec<_> = params
        .iter()
        .filter_map(|name| name.split_once('.'))
        .collect();
    names.dedup_by_key(|(view, _)| *view);
    match names.as_slice() {
        [] => String::new(),
        names => {
            let names: Vec<_> = names.iter().map(|(view, _)| format!("`{view}`")).collect();
            format!(
                ": for {} pass what becomes the view (`ToKernel`), or its fields one by one",
                names.join(", ")
            )
        }
    }
}

fn known(names: &[String]) -> String {
    match names {
        [] => "it has none".to_owned(),
        names => format!("it has {}", names.join(", ")),
    }
}
