//! The structs of DLPack's C interface (dlpack.h, versions 0.8 and 1.0): what is handed over, and what is in it.

use std::ffi::c_void;
use std::ptr::NonNull;

use half::{bf16, f16};

use crate::value::KernelType;

/// Memory of the host.
pub(super) const CPU: i32 = 1;
/// Memory of a CUDA device.
pub(super) const CUDA: i32 = 2;
/// Pinned memory of the host, which CUDA devices reach.
pub(super) const CUDA_HOST: i32 = 3;
/// Managed memory of CUDA's.
pub(super) const CUDA_MANAGED: i32 = 13;

/// The version that tensors are made of; any with this major version can be read.
pub(super) const VERSION: Version = Version { major: 1, minor: 0 };

/// The flag of a tensor that may not be written.
pub(super) const READ_ONLY: u64 = 1;

/// Where memory is (`DLDevice`).
#[repr(C)]
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub(super) kind: i32,
    pub(super) ordinal: i32,
}

/// What elements are (`DLDataType`).
#[repr(C)]
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ElementType {
    pub(super) code: u8,
    pub(super) bits: u8,
    pub(super) lanes: u16,
}

impl std::fmt::Display for ElementType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match self.code {
            0 => "int",
            1 => "uint",
            2 => "float",
            4 => "bfloat",
            5 => "complex",
            6 => "bool",
            code => return write!(f, "type {code} of {} bits", self.bits),
        };
        write!(f, "{name}{}", self.bits)?;
        match self.lanes {
            1 => Ok(()),
            lanes => write!(f, "x{lanes}"),
        }
    }
}

/// Memory with a type and a shape (`DLTensor`).
#[repr(C)]
#[derive(Debug)]
pub(super) struct Tensor {
    pub(super) data: *mut c_void,
    pub(super) place: Place,
    pub(super) dimensions: i32,
    pub(super) element: ElementType,
    pub(super) shape: *mut i64,
    /// In elements; null: the last index is the fastest.
    pub(super) strides: *mut i64,
    pub(super) byte_offset: u64,
}

/// `DLPackVersion`.
#[repr(C)]
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Version {
    pub(super) major: u32,
    pub(super) minor: u32,
}

/// A tensor that is handed over (`DLManagedTensorVersioned`); a Python capsule of the name `dltensor_versioned` holds
/// the address of one.
#[repr(C)]
#[derive(Debug)]
pub struct ManagedTensor {
    pub(super) version: Version,
    pub(super) context: *mut c_void,
    pub(super) deleter: Option<unsafe extern "C" fn(*mut ManagedTensor)>,
    pub(super) flags: u64,
    pub(super) tensor: Tensor,
}

/// A tensor that is handed over, as before DLPack 1.0 (`DLManagedTensor`); a capsule of the name `dltensor` holds the
/// address of one.
#[repr(C)]
#[derive(Debug)]
pub struct LegacyTensor {
    pub(super) tensor: Tensor,
    pub(super) context: *mut c_void,
    pub(super) deleter: Option<unsafe extern "C" fn(*mut LegacyTensor)>,
}

/// A type of elements that DLPack has.
pub trait TensorElement: KernelType {
    /// What DLPack calls it.
    const ELEMENT: ElementType;
}

macro_rules! elements {
    ($($rust:ty => $code:literal, $bits:literal;)*) => {$(
        impl TensorElement for $rust {
            const ELEMENT: ElementType = ElementType { code: $code, bits: $bits, lanes: 1 };
        }
    )*};
}

elements! {
    i8 => 0, 8;
    i16 => 0, 16;
    i32 => 0, 32;
    i64 => 0, 64;
    u8 => 1, 8;
    u16 => 1, 16;
    u32 => 1, 32;
    u64 => 1, 64;
    f16 => 2, 16;
    f32 => 2, 32;
    f64 => 2, 64;
    bf16 => 4, 16;
    bool => 6, 8;
}

/// A tensor of other code, whose end is the end of this.
#[derive(Debug)]
pub(super) enum Managed {
    Versioned(NonNull<ManagedTensor>),
    Legacy(NonNull<LegacyTensor>),
}

impl Managed {
    pub(super) fn tensor(&self) -> &Tensor {
        // SAFETY: whoever handed it over has promised that it is one until its deleter is called, at the end.
        unsafe {
            match self {
                Managed::Versioned(tensor) => &tensor.as_ref().tensor,
                Managed::Legacy(tensor) => &tensor.as_ref().tensor,
            }
        }
    }

    /// The flags; the older form has none.
    pub(super) fn flags(&self) -> u64 {
        match self {
            // SAFETY: as above.
            Managed::Versioned(tensor) => unsafe { tensor.as_ref().flags },
            Managed::Legacy(_) => 0,
        }
    }

    /// The version; the older form is of none that matters.
    pub(super) fn version(&self) -> Version {
        match self {
            // SAFETY: as above; the version is the first field in all versions.
            Managed::Versioned(tensor) => unsafe { (&raw const (*tensor.as_ptr()).version).read() },
            Managed::Legacy(_) => VERSION,
        }
    }
}

// SAFETY: DLPack's deleters may be called on any thread.
unsafe impl Send for Managed {}
// SAFETY: nothing is changed until the end.
unsafe impl Sync for Managed {}

impl Drop for Managed {
    fn drop(&mut self) {
        // SAFETY: it is called once, with the tensor that it is of.
        unsafe {
            match *self {
                Managed::Versioned(tensor) => {
                    if let Some(deleter) = tensor.as_ref().deleter {
                        deleter(tensor.as_ptr());
                    }
                }
                Managed::Legacy(tensor) => {
                    if let Some(deleter) = tensor.as_ref().deleter {
                        deleter(tensor.as_ptr());
                    }
                }
            }
        }
    }
}
