//! What a kernel uses that a machine does not have: the error of every [`Isa`](crate::Isa)'s check.

use std::fmt;

use kiln_ir::{debug_as_text, error_text, first_of};

/// Something a target does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Illegal {
    /// The function it is in.
    pub function: String,
    /// The line that built it, as `file:line:column`.
    pub location: String,
    /// What the target does not have, and how to do without.
    pub message: String,
}

impl fmt::Display for Illegal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Illegal {
            function,
            location,
            message,
        } = self;
        f.write_str(&error_text!("{location}: in `{function}`: {message}"))
    }
}

/// Everything of a kernel that a target does not have.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", error_text!("kernel `{module}` cannot be compiled for {target}:\n{}", lines(.list)))]
pub struct IllegalOperations {
    /// The module.
    pub module: String,
    /// The target.
    pub target: String,
    /// What the kernel holds that is not legal; not empty.
    pub list: Vec<Illegal>,
}

debug_as_text!(IllegalOperations);

fn lines(list: &[Illegal]) -> String {
    let first = first_of(list).iter();
    let mut lines: Vec<String> = first.map(|illegal| format!("  {illegal}")).collect();
    if list.len() > lines.len() {
        lines.push(format!("  and {} more", list.len() - lines.len()));
    }
    lines.join("\n")
}
