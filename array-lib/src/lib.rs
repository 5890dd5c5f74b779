//! Arrays with fused broadcast and reductions.
//!
//! An expression over arrays is not computed operator by operator: it is kept as an [`Expr`] until
//! [`Expr::eval`], which builds one kernel for the whole of it, specialized on its shape and
//! element types, and launches that. Functions become part of the same kernel: a `#[device_fn]`, or a
//! closure.
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[device_fn]
//! fn f<T: Float>(x: T) -> T {
//!     T::from_f64(3.0) * x * x + T::from_f64(5.0) * x + T::from_f64(2.0)
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let arrays = Arrays::new(&Jit::new()?);
//! let x = arrays.vector(vec![1.0f64, 4.0])?;
//! let t = 2.0 * &x * &x + 6.0 * x.powi(3) - x.sqrt();
//! let y = t.map(device!(f)).eval()?; // one kernel, one launch
//! assert_eq!(y.to_vec()?, [184.0, 516_260.0]);
//!
//! let limit = 1_000.0;
//! let small = y.map(device!(|y| if y < limit { 1u32 } else { 0 }));
//! assert_eq!(small.sum()?, 1); // counted in the kernel that compares
//! # Ok(())
//! # }
//! ```
//!
//! This crate uses what any user of the core has, and nothing else.
#![forbid(unsafe_code)]

// What the macros of kernels write in this crate itself is named as in a user's.
extern crate self as kiln;

mod argument;
mod array;
mod axes;
mod display;
mod eval;
mod expr;
mod function;
mod fused;
mod indexed;
mod input;
mod kept;
mod later;
mod layout;
mod make;
#[cfg(feature = "ndarray")]
mod ndarrays;
mod neighbor;
#[cfg(feature = "npy")]
mod npy;
mod number;
mod ops;
mod product;
mod random;
mod read;
mod recorded;
mod reduce;
mod scan;
mod scatter;
mod search;
mod segments;
mod several;
mod shape;
mod signature;
mod slice;
mod softmax;
mod sort;
mod space;
mod statistics;
mod structure;
mod view;

pub use argument::{
    View1, View1Args, View1Mut, View1MutArgs, View2, View2Args, View2Mut, View2MutArgs, View3,
    View3Args, View3Mut, View3MutArgs,
};
pub use array::{Array, ArrayMut, Arrays};
pub use axes::{Axes, IntoAxes, keep_dims};
pub use expr::{BroadcastArgs, Expr, IntoExpr, broadcast};
pub use function::{Arity, ElementFn};
pub use fused::Explanation;
pub use input::Element;
pub use neighbor::{Border, Convolved};
#[cfg(feature = "npy")]
pub use npy::FileElement;
pub use number::{FloatElement, IntegerElement, NumberElement, SignedElement};
pub use ops::where_;
pub use random::{RandomElement, RandomInteger};
pub use scatter::AtomicElement;
pub use search::Side;
pub use several::{OutputOf, Outputs, eval_all};
pub use shape::{IntoShape, Shape, ShapeMismatch};
pub use slice::SliceItem;
pub use sort::SortElement;

use kiln_jit_core::error::{Error, LibraryError};
use kiln_jit_core::runtime::DeviceId;

/// What the code that `device!` writes refers to.
#[doc(hidden)]
pub mod macros {
    pub use crate::function::{
        Capture, Captured, HostFn, closure1, closure2, closure3, closure4, closure5, closure6,
        closure7, closure8,
    };

    // For `#[kernel]`, `#[device_fn]`, `#[derive(KernelView)]`, `#[derive(KernelType)]` and `device!` in this crate itself.
    pub(crate) use kiln_device_stdlib::plain::{memory::shared_memory, operator::*, resolve::*};
    pub(crate) use kiln_jit_core::args::packed::{Packing, Parameters, field_key};
    pub(crate) use kiln_jit_core::args::{Arg, IntoArg, ReadSlot, RecordedValue, SlotMut};
    pub(crate) use kiln_jit_core::error::Error;
    pub(crate) use kiln_jit_core::front::macros::*;
    pub(crate) use kiln_jit_core::ir::{Constant, Type, TypeForm, TypeTable};
    pub(crate) use kiln_jit_core::jit::{Jit, Recording};
    pub(crate) use kiln_jit_core::launch::LaunchConfig;
    pub(crate) use kiln_jit_core::runtime::Part;
    pub(crate) use kiln_jit_core::value::{DeviceType, KernelType, KernelValue};
    pub(crate) use kiln_jit_core::view::{
        KernelView, ToKernel, ToSlice, ToSliceMut, passed_view, slice_type, struct_type,
    };
}

/// What can go wrong with an array operation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArrayError {
    /// Shapes that do not go together.
    #[error(transparent)]
    Shape(#[from] ShapeMismatch),
    /// A number of values that does not fill the shape.
    #[error("{values} values do not fill a {shape} array; it has {} elements", shape.len())]
    Count {
        /// How many values.
        values: usize,
        /// The shape.
        shape: Shape,
    },
    /// An expression of too many operations.
    #[error(
        "an expression has more than {limit} operations and operands; compute part of it with \
         `eval` and go on from there"
    )]
    TooLarge {
        /// How many it may have.
        limit: usize,
    },
    /// An expression of numbers alone.
    #[error("an expression needs at least one array to be computed; this one has only numbers")]
    NoArray,
    /// An expression over slots that is to be computed at once.
    #[error(
        "an expression over slots of a graph is computed by replays: `record` it in the closure of \
         `Jit::graph`"
    )]
    Slots,
    /// A result that goes to a buffer which its expression reads at other places.
    #[error(
        "the result goes to a buffer that the expression reads, and not element by element: record it to \
         another, as of `keep`, and copy it from there"
    )]
    InPlace,
    /// A result that does not fill the buffer that it goes to.
    #[error(
        "the result of a {shape} expression cannot go to a buffer of {length} elements in a graph: record \
         it to one of {}, or leave it out if there is none", shape.len()
    )]
    ResultLength {
        /// The shape of the expression.
        shape: Shape,
        /// The length of the buffer.
        length: usize,
    },
    /// A dimension that an array does not have.
    #[error("an array of shape {shape} has no dimension {axis}; it has {}, counted from 0, or from the end by -1 and below", shape.rank())]
    Axis {
        /// The number of the dimension.
        axis: isize,
        /// The array's shape.
        shape: Shape,
    },
    /// A dimension that is to be folded twice.
    #[error(
        "dimension {axis} of an array of shape {shape} is named twice; name each that is folded once"
    )]
    Repeated {
        /// The dimension.
        axis: usize,
        /// The array's shape.
        shape: Shape,
    },
    /// An index or a range that an array does not have.
    #[error("{item} is outside of dimension {axis} of an array of shape {shape}")]
    Outside {
        /// The index or the range.
        item: SliceItem,
        /// The dimension.
        axis: usize,
        /// The array's shape.
        shape: Shape,
    },
    /// More indices and ranges than dimensions, or fewer where an element is meant.
    #[error("{items} indices do not go with an array of shape {shape}, which has {} dimensions", shape.rank())]
    Items {
        /// How many there are.
        items: usize,
        /// The array's shape.
        shape: Shape,
    },
    /// Dimensions in an order that does not have each of them once.
    #[error(
        "{order:?} is no order of the dimensions of an array of shape {shape}; it names each of them once, from 0"
    )]
    Order {
        /// The order.
        order: Vec<usize>,
        /// The array's shape.
        shape: Shape,
    },
    /// Windows that do not fit.
    #[error(
        "there are no windows of {count} elements along dimension {axis} of an array of shape {shape}"
    )]
    Window {
        /// How many neighbours.
        count: usize,
        /// The dimension.
        axis: usize,
        /// The array's shape.
        shape: Shape,
    },
    /// A share of elements that is none.
    #[error(
        "{share} is no share of the elements; it is from 0, for the least of them, to 1, for the greatest"
    )]
    Share {
        /// The share.
        share: f64,
    },
    /// A range that random integers are to be of, and that has none.
    #[error("there are no integers in {range} to draw from; its end is above its start")]
    EmptyRange {
        /// The range.
        range: String,
    },
    /// An array of any other number of elements than one, whose only element is meant.
    #[error("an array of shape {shape} has {} elements, and no only one", shape.len())]
    NotOne {
        /// The array's shape.
        shape: Shape,
    },
    /// An array whose elements do not lie one after the other, for what takes only those that do.
    #[error(
        "the elements of this array of shape {shape} do not lie one after the other (strides {strides:?}); \
         `contiguous()` makes a copy that does"
    )]
    NotContiguous {
        /// The array's shape.
        shape: Shape,
        /// How far neighbours are from each other.
        strides: Vec<isize>,
    },
    /// An array that cannot be an argument of a launch.
    #[error("{why}")]
    NotPassed {
        /// What the device said as the array was copied for the launch, or where its elements lie.
        why: String,
    },
    /// An array that a kernel has no view of.
    #[error(
        "an array of shape {shape} is no view of {rank} dimensions of a kernel; it has {}, and a buffer may have 2^32 - 1 elements",
        shape.rank()
    )]
    View {
        /// How many dimensions the view has.
        rank: usize,
        /// The array's shape.
        shape: Shape,
    },
    /// Indices of an array that has more elements than `u32` has numbers.
    #[error(
        "the indices of an array of shape {shape} are more than `u32` has numbers; use those of its dimensions"
    )]
    ManyIndices {
        /// The array's shape.
        shape: Shape,
    },
    /// What is no vector, where one is needed.
    #[error("{what} are a vector{}; this is an array of shape {shape}", of_at_least(*least))]
    Vector {
        /// What needs one.
        what: &'static str,
        /// How many elements it needs.
        least: usize,
        /// The array's shape.
        shape: Shape,
    },
    /// A file that cannot be read or written.
    #[error("`{path}`: {why}")]
    File {
        /// The file.
        path: String,
        /// What the system or the format says.
        why: String,
    },
    /// An array of the host of another number of dimensions than is asked for.
    #[error("an array of shape {shape} has {} dimensions, and {rank} are asked for", shape.rank())]
    Rank {
        /// How many are asked for.
        rank: usize,
        /// The array's shape.
        shape: Shape,
    },
    /// An operation on more elements than its indices, of 32 bits, tell apart.
    #[error(
        "{operation} of an array of shape {shape}: its indices tell {most} elements apart; go through it in parts, \
         `x.slice(s![a..b])`"
    )]
    TooMany {
        /// The name of the operation.
        operation: &'static str,
        /// The array's shape.
        shape: Shape,
        /// How many it may have.
        most: usize,
    },
    /// An operation of an expression that cannot be done, of which whoever computes the expression is told.
    #[error("{why} ({at})")]
    Operation {
        /// Why not.
        why: Box<ArrayError>,
        /// Where the operation is written.
        at: &'static std::panic::Location<'static>,
    },
    /// A fold that has no result without elements.
    #[error("{operation} of no elements: an array of shape {shape} has none where they are folded")]
    Empty {
        /// The name of the fold.
        operation: &'static str,
        /// The array's shape.
        shape: Shape,
    },
    /// A fold along some dimensions that leaves more results than a launch has blocks.
    #[error(
        "a fold of an array of shape {shape} has {results} results on the way, more than one launch gives; fold it in parts"
    )]
    ManyResults {
        /// The array's shape.
        shape: Shape,
        /// How many results there are, before those of one row or column are folded.
        results: usize,
    },
    /// A buffer of another device.
    #[error("the buffer lies on {owner}, and the arrays are of {device}; copy it with `to_vec`")]
    Foreign {
        /// Where the buffer lies.
        owner: DeviceId,
        /// The device of the arrays.
        device: DeviceId,
    },
    /// Building, compiling or launching the kernel failed.
    #[error(transparent)]
    Kernel(#[from] Error),
}

/// How many elements a vector needs, in words; nothing if it may have none.
fn of_at_least(least: usize) -> String {
    match least {
        0 => String::new(),
        1 => " of at least 1 element".to_owned(),
        least => format!(" of at least {least} elements"),
    }
}

/// A `?` in a function that gives a `kiln::Result`: what a kernel met is that error itself, anything else is found by
/// [`Error::library`].
impl From<ArrayError> for Error {
    fn from(error: ArrayError) -> Error {
        match error {
            ArrayError::Kernel(error) => error,
            error => LibraryError::new(error).into(),
        }
    }
}

impl From<ShapeMismatch> for Error {
    fn from(error: ShapeMismatch) -> Error {
        ArrayError::Shape(error).into()
    }
}

/// The result of an array operation.
pub type Result<T, E = ArrayError> = std::result::Result<T, E>;
