//! Descriptions that are wrong.

use crate::build::BuildErrors;
use crate::definition::{ModuleError, RecursionError, SignatureChanged};
use crate::ir::{LinkError, ParseError, debug_as_text};

/// What is wrong with the description of a kernel or device function.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum DescribeError {
    /// Mistakes in it.
    #[error(transparent)]
    Build(#[from] BuildErrors),
    /// A module that no kernel can be made of.
    #[error(transparent)]
    Module(#[from] ModuleError),
    /// A redefinition changes the signature that callers rely on.
    #[error(transparent)]
    SignatureChanged(#[from] SignatureChanged),
    /// A function calls itself, directly or not.
    #[error(transparent)]
    Recursion(#[from] RecursionError),
    /// A text that is no module.
    #[error(transparent)]
    Text(#[from] ParseError),
    /// A function that does not go into a module.
    #[error(transparent)]
    Link(#[from] LinkError),
}

debug_as_text!(DescribeError);
