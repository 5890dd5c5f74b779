//! One thread's values as hooks see them, made of leaves and taken apart again.
//!
//! A hook sees what it would see on a GPU: a vector is one of LLVM's, a slice an address and a length, a struct or
//! an array LLVM's of what lies in memory (`gpu::types` has the two forms of a type). Leaves carry 16-bit floats as
//! their bits.

use inkwell::types::{BasicType as _, BasicTypeEnum, PointerType};
use inkwell::values::{BasicValue as _, BasicValueEnum};

use kiln_ir::legal::{LegalTypes, Proved as _};
use kiln_ir::{Scalar, Type, TypeData};

use super::emit::{Built, Emit};
use crate::hooks::{LoweredOperation, lanes_per_piece, scalar_type};
use crate::llvm::ask::aggregate;
use crate::llvm::error::BackendError;

/// Between the leaves of one thread's values and the values that a hook is given and gives.
pub(super) struct HookValues<'e, 'm, 'ctx> {
    /// At the place of the hook's code.
    pub(super) emit: &'e Emit<'e, 'ctx>,
    pub(super) types: LegalTypes<'m>,
}

impl<'ctx> Emit<'_, 'ctx> {
    /// Memory is one on a CPU.
    pub(super) fn address_type(&self) -> PointerType<'ctx> {
        self.context.ptr_type(inkwell::AddressSpace::default())
    }
}

impl<'ctx> HookValues<'_, '_, 'ctx> {
    fn scalar(&self, scalar: Scalar) -> BasicTypeEnum<'ctx> {
        scalar_type(self.emit.context, scalar)
    }

    fn vector(&self, element: Scalar, lanes: u8) -> BasicTypeEnum<'ctx> {
        let element = self.scalar(element);
        self.emit.vector(element, lanes.into()).into()
    }

    /// The type of a value in a struct or an array, and of these.
    pub(super) fn memory_type(&self, ty: Type) -> BasicTypeEnum<'ctx> {
        let context = self.emit.context;
        let address = self.emit.address_type();
        match *self.types.data(ty) {
            TypeData::Scalar(scalar) if scalar.is_bool() => self.emit.int(8).into(),
            TypeData::Scalar(scalar) => self.scalar(scalar),
            TypeData::Pointer { .. } => address.into(),
            TypeData::Slice { .. } => {
                let fields = [address.into(), self.emit.int(64).into()];
                context.struct_type(&fields, false).into()
            }
            TypeData::Vector { element, lanes } => match lanes_per_piece(element, lanes) {
                None => self.vector(element, lanes),
                Some(piece) => {
                    let pieces = u32::from(lanes / piece);
                    self.vector(element, piece).array_type(pieces).into()
                }
            },
            TypeData::Array { .. } => {
                let (element, len) = self.types.array_of(ty);
                self.memory_type(element).array_type(len as u32).into()
            }
            TypeData::Struct(id) => {
                let fields = &self.types.struct_data(id).fields;
                let fields: Vec<_> = fields.iter().map(|(_, ty)| self.memory_type(*ty)).collect();
                context.struct_type(&fields, false).into()
            }
            TypeData::Unit | TypeData::Param(_) => context.struct_type(&[], false).into(),
        }
    }

    /// The arguments that a hook sees of an operand.
    pub(super) fn push_args(
        &self,
        ty: Type,
        leaves: &mut impl Iterator<Item = BasicValueEnum<'ctx>>,
        args: &mut Vec<BasicValueEnum<'ctx>>,
    ) -> Result<(), BackendError> {
        if self.types.is_slice(ty) {
            args.extend([next(leaves), next(leaves)]);
        } else {
            args.push(self.value(ty, leaves)?);
        }
        Ok(())
    }

    /// A value of what is no slice.
    fn value(
        &self,
        ty: Type,
        leaves: &mut impl Iterator<Item = BasicValueEnum<'ctx>>,
    ) -> Built<'ctx> {
        match *self.types.data(ty) {
            TypeData::Scalar(scalar) => self.cast_bits(next(leaves), self.scalar(scalar)),
            TypeData::Vector { element, lanes } => self.vector_of(element, lanes, leaves),
            TypeData::Unit
            | TypeData::Array { .. }
            | TypeData::Struct(_)
            | TypeData::Pointer { .. }
            | TypeData::Slice { .. }
            | TypeData::Param(_) => self.in_memory(ty, leaves),
        }
    }

    fn vector_of(
        &self,
        element: Scalar,
        lanes: u8,
        leaves: &mut impl Iterator<Item = BasicValueEnum<'ctx>>,
    ) -> Built<'ctx> {
        let mut whole = self.vector(element, lanes).into_vector_type().const_zero();
        for lane in 0..lanes {
            let part = self.cast_bits(next(leaves), self.scalar(element))?;
            let lane = self.emit.i32(lane.into());
            let builder = &self.emit.builder;
            whole = builder.build_insert_element(whole, part, lane, "")?;
        }
        Ok(whole.into())
    }

    /// A value as it is in a struct or an array.
    fn in_memory(
        &self,
        ty: Type,
        leaves: &mut impl Iterator<Item = BasicValueEnum<'ctx>>,
    ) -> Built<'ctx> {
        match *self.types.data(ty) {
            TypeData::Scalar(scalar) if scalar.is_bool() => {
                self.emit.resize(next(leaves), 8, false)
            }
            TypeData::Pointer { .. } => Ok(next(leaves)),
            TypeData::Slice { .. } => {
                let (address, length) = (next(leaves), next(leaves));
                let length = self.emit.resize(length, 64, false)?;
                self.whole(ty, [Ok(address), Ok(length)])
            }
            TypeData::Vector { element, lanes } => match lanes_per_piece(element, lanes) {
                None => self.vector_of(element, lanes, leaves),
                Some(piece) => {
                    let pieces = (0..lanes / piece).map(|_| self.vector_of(element, piece, leaves));
                    self.whole(ty, pieces)
                }
            },
            // Of what has no leaves there may be any number.
            TypeData::Array { .. } | TypeData::Struct(_) if self.types.leaf_count(ty) == 0 => {
                Ok(self.memory_type(ty).const_zero())
            }
            TypeData::Array { .. } => {
                let (element, len) = self.types.array_of(ty);
                let parts = (0..len).map(|_| self.in_memory(element, leaves));
                self.whole(ty, parts)
            }
            TypeData::Struct(id) => {
                let fields = self.types.struct_data(id).fields.iter();
                self.whole(ty, fields.map(|(_, field)| self.in_memory(*field, leaves)))
            }
            TypeData::Scalar(_) | TypeData::Unit | TypeData::Param(_) => self.value(ty, leaves),
        }
    }

    /// A struct or an array of these parts.
    fn whole(&self, ty: Type, parts: impl IntoIterator<Item = Built<'ctx>>) -> Built<'ctx> {
        let mut whole = self.memory_type(ty).const_zero();
        for (i, part) in (0..).zip(parts) {
            let part = part?;
            let builder = &self.emit.builder;
            let inserted = builder.build_insert_value(aggregate(whole), part, i, "")?;
            whole = inserted.as_basic_value_enum();
        }
        Ok(whole)
    }

    /// Returns what a hook has given for a result of a type, in leaves.
    pub(super) fn return_leaves(
        &self,
        lowered: LoweredOperation<'ctx>,
        ty: Type,
    ) -> Result<(), BackendError> {
        let mut parts = Vec::new();
        match lowered {
            LoweredOperation::Value(value) => self.take_apart(value, ty, &mut parts)?,
            LoweredOperation::Slice { address, length } => {
                let pair: [BasicValueEnum<'ctx>; 2] = [address.into(), length.into()];
                parts.extend(pair);
            }
            LoweredOperation::Done => {}
        }
        for (part, leaf) in parts.iter_mut().zip(self.types.leaves(ty)) {
            *part = self.cast_bits(*part, self.emit.leaf_type(leaf))?;
        }
        self.emit.builder.build_aggregate_return(&parts)?;
        Ok(())
    }

    /// The leaves of a value of what is no slice.
    fn take_apart(
        &self,
        value: BasicValueEnum<'ctx>,
        ty: Type,
        parts: &mut Vec<BasicValueEnum<'ctx>>,
    ) -> Result<(), BackendError> {
        match value {
            BasicValueEnum::VectorValue(vector) => {
                for lane in 0..vector.get_type().get_size() {
                    parts.push(self.emit.lane(vector, self.emit.i32(lane))?);
                }
                Ok(())
            }
            BasicValueEnum::StructValue(_) | BasicValueEnum::ArrayValue(_) => {
                self.take_from_memory(value, ty, parts)
            }
            single => {
                parts.push(single);
                Ok(())
            }
        }
    }

    /// The leaves of a value as it is in a struct or an array.
    fn take_from_memory(
        &self,
        value: BasicValueEnum<'ctx>,
        ty: Type,
        parts: &mut Vec<BasicValueEnum<'ctx>>,
    ) -> Result<(), BackendError> {
        let part = |index| {
            let builder = &self.emit.builder;
            builder.build_extract_value(aggregate(value), index, "")
        };
        match *self.types.data(ty) {
            TypeData::Scalar(scalar) if scalar.is_bool() => {
                parts.push(self.emit.resize(value, 1, false)?)
            }
            TypeData::Slice { wide, .. } => {
                let bits = if wide { 64 } else { 32 };
                parts.extend([part(0)?, self.emit.resize(part(1)?, bits, false)?]);
            }
            TypeData::Vector { element, lanes } => match lanes_per_piece(element, lanes) {
                None => self.take_apart(value, ty, parts)?,
                Some(piece) => {
                    for i in 0..lanes / piece {
                        self.take_apart(part(i.into())?, ty, parts)?;
                    }
                }
            },
            TypeData::Array { .. } | TypeData::Struct(_) if self.types.leaf_count(ty) == 0 => {}
            TypeData::Array { .. } => {
                let (element, len) = self.types.array_of(ty);
                for i in 0..len {
                    self.take_from_memory(part(i as u32)?, element, parts)?;
                }
            }
            TypeData::Struct(id) => {
                let fields = self.types.struct_data(id).fields.iter();
                for (i, (_, field)) in (0..).zip(fields) {
                    self.take_from_memory(part(i)?, *field, parts)?;
                }
            }
            TypeData::Scalar(_)
            | TypeData::Pointer { .. }
            | TypeData::Unit
            | TypeData::Param(_) => parts.push(value),
        }
        Ok(())
    }

    /// A value as another type of as many bits, which stay as they are.
    fn cast_bits(&self, value: BasicValueEnum<'ctx>, ty: BasicTypeEnum<'ctx>) -> Built<'ctx> {
        match value.get_type() == ty {
            true => Ok(value),
            false => Ok(self.emit.builder.build_bit_cast(value, ty, "")?),
        }
    }
}

fn next<'ctx>(leaves: &mut impl Iterator<Item = BasicValueEnum<'ctx>>) -> BasicValueEnum<'ctx> {
    leaves.next().proved("a leaf of an operand")
}
