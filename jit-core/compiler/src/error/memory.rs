//! Memory that there is not, and values that are none.

use std::ops::Range;

use crate::ir::{debug_as_text, error_text};
use crate::lent::dlpack::TensorError;
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
    /// A part that a buffer does not have.
    #[error("{}", error_text!(
        "{values} values from element {start} on are no part of a buffer of {buffer}; ask for fewer, or from earlier on"
    ))]
    NoPart {
        /// Values the buffer has.
        buffer: usize,
        /// The first element of the part.
        start: usize,
        /// Values of the part.
        values: usize,
    },
    /// A part that a region does not have.
    #[error("{}", error_text!(
        "the ranges {ranges:?} of planes, rows and columns are no part of a region of {whole:?}; ask for fewer, or from \
         earlier on"
    ))]
    NoRegion {
        /// Planes, rows and columns that there are.
        whole: [usize; 3],
        /// What was asked for.
        ranges: [Range<usize>; 3],
    },
    /// A region of memory that is smaller.
    #[error("{}", error_text!(
        "a region is of {whole:?} planes, rows and columns in all, and the memory has {elements} elements; say how the \
         memory is laid out, as `Region::of([rows, columns])`"
    ))]
    RegionTooLarge {
        /// Planes, rows and columns of all.
        whole: [usize; 3],
        /// The elements of the memory.
        elements: usize,
    },
    /// A copy between regions of two extents.
    #[error("{}", error_text!(
        "a region of {from:?} planes, rows and columns is not copied to one of {to:?}; take parts of one extent"
    ))]
    OtherExtent {
        /// The extent of the region that is written.
        to: [usize; 3],
        /// The extent of the region that is read.
        from: [usize; 3],
    },
    /// A part of a buffer that lies farther back than parts do, or is longer.
    #[error("{}", error_text!(
        "{values} values from element {start} on are no part of their own: a part is shorter than 2^32 values and \
         begins among the first 2^32 alignments of one; pass the whole buffer and where the part begins"
    ))]
    FarPart {
        /// The first element of the part.
        start: usize,
        /// Values of the part.
        values: usize,
    },
    /// Values that cannot be seen as values of another type.
    #[error("{}", error_text!(
        "{values} values of `{from}` are not to be seen as `{to}`: {why}; copy them, by `to_vec` and `Jit::upload`"
    ))]
    NoCast {
        /// The type of the values.
        from: &'static str,
        /// The other.
        to: &'static str,
        /// How many there are.
        values: usize,
        /// What is in the way.
        why: &'static str,
    },
    /// An array of another number of elements than a buffer.
    #[cfg(feature = "ndarray")]
    #[error("{}", error_text!(
        "a buffer of {buffer} values is no array of shape {shape:?}; give a shape of as many elements"
    ))]
    OtherShape {
        /// Values the buffer has.
        buffer: usize,
        /// The shape that was asked for.
        shape: Vec<usize>,
    },
    /// The host has no memory left.
    #[error("{}", error_text!("the host has no {bytes} bytes of memory left; use smaller buffers or drop some"))]
    Host {
        /// What was asked for.
        bytes: usize,
    },
    /// Two kernels have globals of one name and of different types.
    #[error("{}", error_text!(
        "global `{name}` is a `{}` at {}, and a `{}` at {}; it is the same memory, so give one of them another \
         name", first.0, first.1, second.0, second.1
    ))]
    TwoGlobals {
        /// The name.
        name: String,
        /// The address's type and the place, as the kernel has it that was launched first.
        first: (String, String),
        /// The address's type and the place, as the other kernel has it.
        second: (String, String),
    },
    /// No kernel has a global of the name.
    #[error("{}", error_text!(
        "no kernel with a global `{name}` was launched by this `Jit`; its memory is made by the first launch of \
         one that reads or writes it"
    ))]
    NoGlobal {
        /// The name.
        name: String,
    },
    /// A global is of another type.
    #[error("{}", error_text!(
        "global `{name}` is a `{ty}`, declared at {location}, and no array of `{wanted}`"
    ))]
    OtherGlobal {
        /// The name.
        name: String,
        /// The address's type.
        ty: String,
        /// Where the global was declared.
        location: String,
        /// The type of the elements that was asked for.
        wanted: String,
    },
    /// A tensor that cannot be taken or handed over.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// A buffer does not hold what its type says.
    #[error(transparent)]
    InvalidValue(#[from] InvalidValue),
}

debug_as_text!(MemoryError);
