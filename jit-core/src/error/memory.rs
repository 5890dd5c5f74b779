//! Memory that there is not, and values that are none.

use crate::ir::{debug_as_text, error_text};
use crate::value::InvalidValue;

/// What is wrong with memory, or with what is in it.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// More values than a buffer has.
    #[error("{}", error_text!("{values} values do not fit a buffer of {buffer}; allocate a larger one"))]
    BufferTooSmall {
        /// Values the buffer has.
        buffer: usize,
        /// Values given.
        values: usize,
    },
    /// The host has no memory left.
    #[error("{}", error_text!("the host has no {bytes} bytes of memory left; use smaller buffers or drop some"))]
    Host {
        /// What was asked for.
        bytes: usize,
    },
    /// A buffer does not hold what its type says.
    #[error(transparent)]
    InvalidValue(#[from] InvalidValue),
}

debug_as_text!(MemoryError);
