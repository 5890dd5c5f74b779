//! Tensors that cannot be taken or handed over.

use super::ElementType;
use crate::ir::{debug_as_text, error_text};

/// What is wrong with a tensor.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum TensorError {
    /// A tensor of a version that is not known.
    #[error("{}", error_text!("the tensor is of DLPack {major}.{minor}, and Kiln reads 1; ask for `max_version=(1, 0)`"))]
    Version {
        /// The first number.
        major: u32,
        /// The second number.
        minor: u32,
    },
    /// Elements of another type.
    #[error("{}", error_text!("the tensor's elements are {found}, and {wanted} was asked for; convert it, or take it as what it is"))]
    Element {
        /// The type that the tensor has.
        found: ElementType,
        /// What was asked for.
        wanted: ElementType,
    },
    /// Memory that a device does not reach.
    #[error("{}", error_text!(
        "the tensor is on device {ordinal} of DLPack's kind {kind}, which {device} does not reach; move it there"
    ))]
    Place {
        /// The kind of device.
        kind: i32,
        /// The number of the device.
        ordinal: i32,
        /// The device that was to reach it.
        device: String,
    },
    /// Sizes that are none.
    #[error("{}", error_text!("the tensor has the shape {shape:?}, which is none"))]
    Shape {
        /// What is there for the sizes.
        shape: Vec<i64>,
    },
    /// Elements that do not lie one after the other.
    #[error("{}", error_text!(
        "the tensor of shape {shape:?} has the strides {strides:?}, and a buffer's elements lie one after the other, the \
         last index the fastest; make it contiguous"
    ))]
    Strides {
        /// The shape.
        shape: Vec<usize>,
        /// The strides in elements.
        strides: Vec<i64>,
    },
    /// An address that the type cannot have.
    #[error("{}", error_text!("the tensor begins at {address:#x}, and its elements lie at multiples of {align} bytes; copy it"))]
    Alignment {
        /// The address of the first element.
        address: u64,
        /// The alignment of the type in bytes.
        align: usize,
    },
    /// A tensor that may not be written.
    #[error("{}", error_text!("the tensor is read-only; give one that may be written, a copy for instance"))]
    ReadOnly,
    /// A shape of another number of elements than a buffer.
    #[error("{}", error_text!("a buffer of {buffer} values is no tensor of shape {shape:?}; give a shape of as many elements"))]
    OtherShape {
        /// Values the buffer has.
        buffer: usize,
        /// The shape that was asked for.
        shape: Vec<usize>,
    },
    /// Memory of a device that DLPack has no name for.
    #[error("{}", error_text!("memory of {device} has no place that DLPack has a name for; use `Device::cuda` or `Device::cpu`"))]
    NoPlace {
        /// The device.
        device: String,
    },
}

debug_as_text!(TensorError);
