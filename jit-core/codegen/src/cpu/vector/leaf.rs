//! Values in all lanes of a warp.
//!
//! A value is taken apart into its leaves: numbers and addresses. A leaf is a scalar if it is the
//! same in all lanes, a vector otherwise. What grows evenly from lane to lane (a thread index, the
//! address of `x[i]`) keeps that form, as it makes the difference between one wide load and a
//! gather.
//!
//! `f16` and `bf16` are carried as the 16 bits they have in memory, so that no operation on them
//! depends on what the processor has.

use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValueEnum, InstructionOpcode, IntValue, PointerValue, VectorValue};
use smallvec::SmallVec;

use kiln_ir::{LeafKind, LeafType, Scalar};

use super::emit::{Built, Emit, unexpected};
use crate::llvm::error::BackendError;

impl<'ctx> Emit<'_, 'ctx> {
    /// A scalar as it is stored: vectors of bits have no addressable parts, so a `bool` takes a byte.
    pub(super) fn as_stored(&self, value: BasicValueEnum<'ctx>, scalar: Scalar) -> Built<'ctx> {
        match scalar.is_bool() {
            true => self.resize(value, 8, false),
            false => Ok(value),
        }
    }

    /// The LLVM type of a scalar as it is stored.
    pub(super) fn stored_type(&self, scalar: Scalar) -> BasicTypeEnum<'ctx> {
        match scalar.is_bool() {
            true => self.int(8).into(),
            false => scalar_type(self, scalar),
        }
    }

    /// A scalar from how it is stored.
    pub(super) fn as_computed(&self, value: BasicValueEnum<'ctx>, scalar: Scalar) -> Built<'ctx> {
        match scalar.is_bool() {
            true => self.resize(value, 1, false),
            false => Ok(value),
        }
    }

    /// A scalar as an integer of the bytes that it has in memory.
    pub(super) fn to_bits(&self, value: BasicValueEnum<'ctx>, scalar: Scalar) -> Built<'ctx> {
        let stored = self.as_stored(value, scalar)?;
        let bits = self.int(scalar.bytes() * 8).into();
        self.cast(InstructionOpcode::BitCast, stored, bits)
    }

    /// The scalar whose lowest bits an integer has.
    pub(super) fn of_bits(&self, bits: BasicValueEnum<'ctx>, scalar: Scalar) -> Built<'ctx> {
        let bits = self.resize(bits, scalar.bits(), false)?;
        self.cast(InstructionOpcode::BitCast, bits, scalar_type(self, scalar))
    }

    /// The LLVM type of a leaf in a lane.
    pub(super) fn leaf_type(&self, leaf: LeafType) -> BasicTypeEnum<'ctx> {
        match leaf.kind {
            LeafKind::Address => self
                .context
                .ptr_type(inkwell::AddressSpace::default())
                .into(),
            LeafKind::Scalar(scalar) | LeafKind::Length(scalar) => scalar_type(self, scalar),
        }
    }

    /// The LLVM type of a leaf in memory.
    pub(super) fn leaf_in_memory(&self, leaf: LeafType) -> BasicTypeEnum<'ctx> {
        match leaf.kind {
            LeafKind::Length(_) => self.int(64).into(),
            LeafKind::Scalar(_) | LeafKind::Address if leaf.is_bool() => self.int(8).into(),
            LeafKind::Scalar(_) | LeafKind::Address => self.leaf_type(leaf),
        }
    }
}

/// The LLVM type that a scalar is computed with.
pub(super) fn scalar_type<'ctx>(emit: &Emit<'_, 'ctx>, scalar: Scalar) -> BasicTypeEnum<'ctx> {
    match scalar {
        Scalar::F32 => emit.context.f32_type().into(),
        Scalar::F64 => emit.context.f64_type().into(),
        Scalar::Bool
        | Scalar::I8
        | Scalar::I16
        | Scalar::I32
        | Scalar::I64
        | Scalar::U8
        | Scalar::U16
        | Scalar::U32
        | Scalar::U64
        | Scalar::F16
        | Scalar::BF16 => emit.int(scalar.bits()).into(),
    }
}

/// The base and the stride of an affine form, and when it holds: always, if that is `None`.
pub(super) type Affine<'ctx> = (BasicValueEnum<'ctx>, i64, Option<IntValue<'ctx>>);

/// What is known of a vector that may be affine.
#[derive(Copy, Clone, Debug)]
pub(super) struct AffineForm<'ctx> {
    /// The value of lane 0.
    pub(super) base: BasicValueEnum<'ctx>,
    /// The difference from lane to lane.
    pub(super) stride: i64,
    /// When the vector is affine.
    pub(super) when: IntValue<'ctx>,
    /// Of an integer: the signedness, if it is one, whose numbers do not wrap around from lane to lane then.
    pub(super) unwrapped: Option<bool>,
    /// Whether the affine vector is an address that all lanes may read an element at.
    pub(super) readable: bool,
    /// Of an address: what may be known where it is not so.
    pub(super) part: Option<Part<'ctx>>,
}

/// What is known of an address whose active lanes are affine, of the others nothing: a row at the edge
/// of an array.
#[derive(Copy, Clone, Debug)]
pub(super) struct Part<'ctx> {
    /// The address lane 0 would have; it may lie outside of the array.
    pub(super) base: BasicValueEnum<'ctx>,
    /// When the active lanes are affine.
    pub(super) when: IntValue<'ctx>,
}

/// The address of an element whose index is affine modulo its width. The lanes are computed where
/// they are needed, which is mostly in code that is never run.
#[derive(Copy, Clone, Debug)]
pub(super) struct Element<'ctx> {
    /// The address of element 0.
    pub(super) origin: BasicValueEnum<'ctx>,
    /// The index of lane 0.
    pub(super) index: BasicValueEnum<'ctx>,
    /// How the index grows from lane to lane.
    pub(super) step: i64,
    /// Whether the index is of a signed type.
    pub(super) signed: bool,
    /// The size of an element in bytes.
    pub(super) size: u64,
}

/// The addresses of elements with any indices.
#[derive(Copy, Clone, Debug)]
pub(super) struct Indexed<'ctx> {
    /// The address of element 0.
    pub(super) origin: BasicValueEnum<'ctx>,
    /// The index of each lane.
    pub(super) index: VectorValue<'ctx>,
    /// Whether the index is of a signed type.
    pub(super) signed: bool,
    /// The size of an element in bytes.
    pub(super) size: u64,
    /// The addresses as an affine form, where there may be one.
    pub(super) affine: Option<AffineForm<'ctx>>,
}

/// A leaf in all lanes.
#[derive(Copy, Clone, Debug)]
pub(super) enum Leaf<'ctx> {
    /// One scalar in all lanes.
    Uniform(BasicValueEnum<'ctx>),
    /// An integer (modulo its width) or an address that grows by `stride` from lane to lane.
    Affine {
        /// The value of lane 0.
        base: BasicValueEnum<'ctx>,
        /// The difference from lane to lane.
        stride: i64,
    },
    /// Anything, perhaps known to be affine at times.
    Vector {
        /// The lanes.
        lanes: VectorValue<'ctx>,
        /// The affine form, where there may be one.
        affine: Option<AffineForm<'ctx>>,
    },
    /// The addresses of elements; made from their indices where they are needed.
    Indexed(Indexed<'ctx>),
    /// The address of an element.
    Element {
        /// The element whose address this is.
        element: Element<'ctx>,
        /// The address as an affine form.
        affine: AffineForm<'ctx>,
    },
}

/// A value in all lanes: its leaves in memory order.
pub(super) type Leaves<'ctx> = SmallVec<[Leaf<'ctx>; 2]>;

impl<'ctx> Leaf<'ctx> {
    /// A scalar or a vector, as it is.
    pub(super) fn from(value: BasicValueEnum<'ctx>) -> Leaf<'ctx> {
        match value {
            BasicValueEnum::VectorValue(lanes) => Leaf::Vector {
                lanes,
                affine: None,
            },
            scalar => Leaf::Uniform(scalar),
        }
    }

    /// The scalar of a uniform leaf.
    pub(super) fn uniform(self) -> Built<'ctx> {
        match self {
            Leaf::Uniform(value) => Ok(value),
            _ => Err(unexpected("a value that differs where it must not")),
        }
    }

    /// The value for operations that know no special form: a scalar or a vector.
    pub(super) fn value(self, emit: &Emit<'_, 'ctx>) -> Built<'ctx> {
        Ok(match self {
            Leaf::Uniform(value) => value,
            other => other.vector(emit)?.into(),
        })
    }

    /// The lanes.
    pub(super) fn vector(self, emit: &Emit<'_, 'ctx>) -> Result<VectorValue<'ctx>, BackendError> {
        match self {
            Leaf::Uniform(value) => emit.splat(value),
            Leaf::Vector { lanes, .. } => Ok(lanes),
            Leaf::Element { element, .. } => element.lanes(emit),
            Leaf::Indexed(indexed) => indexed.lanes(emit),
            Leaf::Affine { base, stride } => {
                if let BasicValueEnum::PointerValue(_) = base {
                    let steps = emit.const_lanes(emit.int(64), |l| lane_offset(stride, l));
                    return Ok(emit.offset(base, steps.into())?.into_vector_value());
                }
                let ty = base.get_type().into_int_type();
                let steps = emit.const_lanes(ty, |l| lane_offset(stride, l));
                let splat = emit.splat(base)?;
                Ok(emit
                    .binary(InstructionOpcode::Add, splat.into(), steps.into())?
                    .into_vector_value())
            }
        }
    }

    /// The affine form and when it holds; `None` in the place of the condition is always.
    pub(super) fn affine(self) -> Option<Affine<'ctx>> {
        match self {
            Leaf::Uniform(base) => Some((base, 0, None)),
            Leaf::Affine { base, stride } => Some((base, stride, None)),
            Leaf::Indexed(Indexed { affine, .. }) | Leaf::Vector { affine, .. } => {
                affine.map(|e| (e.base, e.stride, Some(e.when)))
            }
            Leaf::Element { affine, .. } => Some((affine.base, affine.stride, Some(affine.when))),
        }
    }
}

impl<'ctx> Indexed<'ctx> {
    /// The address of the element with this index, a scalar or a vector.
    pub(super) fn address(self, emit: &Emit<'_, 'ctx>, index: BasicValueEnum<'ctx>) -> Built<'ctx> {
        let index = emit.resize(index, 64, self.signed)?;
        emit.element(self.origin, index, self.size)
    }

    fn lanes(self, emit: &Emit<'_, 'ctx>) -> Result<VectorValue<'ctx>, BackendError> {
        Ok(self.address(emit, self.index.into())?.into_vector_value())
    }
}

impl<'ctx> Element<'ctx> {
    /// The address of one lane's element; `lane` has 64 bits.
    pub(super) fn address_of(
        self,
        emit: &Emit<'_, 'ctx>,
        lane: BasicValueEnum<'ctx>,
    ) -> Result<PointerValue<'ctx>, BackendError> {
        let lane = emit.resize(lane, emit.int_bits(self.index), false)?;
        let step = emit.int_like(self.step as u64, lane);
        let index = emit.add(self.index, emit.mul(lane, step)?)?;
        let index = emit.resize(index, 64, self.signed)?;
        let bytes = emit.mul(index, emit.int_like(self.size, index))?;
        Ok(emit.offset(self.origin, bytes)?.into_pointer_value())
    }

    fn lanes(self, emit: &Emit<'_, 'ctx>) -> Result<VectorValue<'ctx>, BackendError> {
        let index = Leaf::Affine {
            base: self.index,
            stride: self.step,
        };
        let index = emit.resize(index.vector(emit)?.into(), 64, self.signed)?;
        let bytes = emit.mul(index, emit.int_like(self.size, index))?;
        Ok(emit.offset(self.origin, bytes)?.into_vector_value())
    }
}

/// How much a lane adds to the base.
fn lane_offset(stride: i64, lane: u32) -> u64 {
    stride.wrapping_mul(i64::from(lane)) as u64
}
