//! What an IR value is while a function is lowered, and its way in and out of memory form.
//!
//! See `types` for the two forms of a type.

use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValue as _, BasicValueEnum, IntValue, PointerValue, VectorValue};

use kiln_ir::legal::Proved as _;
use kiln_ir::{Type, TypeData};

use super::FunctionLowering;
use crate::hooks::lanes_per_piece;
use crate::llvm::ask::aggregate;
use crate::llvm::error::BackendError;

/// An IR value in LLVM.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Lowered<'ctx> {
    /// One LLVM value, in value form.
    One(BasicValueEnum<'ctx>),
    /// A slice.
    Slice(PointerValue<'ctx>, IntValue<'ctx>),
}

impl<'ctx> Lowered<'ctx> {
    /// The single value of what is no slice.
    #[track_caller]
    pub(super) fn one(self) -> BasicValueEnum<'ctx> {
        let one = match self {
            Lowered::One(value) => Some(value),
            Lowered::Slice(..) => None,
        };
        one.proved("a single value")
    }

    /// The address and length of a slice.
    #[track_caller]
    pub(super) fn slice(self) -> (PointerValue<'ctx>, IntValue<'ctx>) {
        let slice = match self {
            Lowered::Slice(ptr, len) => Some((ptr, len)),
            Lowered::One(_) => None,
        };
        slice.proved("a slice")
    }

    /// The LLVM values of a lowered value in the order of a call's arguments.
    pub(super) fn flatten(self, into: &mut Vec<BasicValueEnum<'ctx>>) {
        match self {
            Lowered::One(value) => into.push(value),
            Lowered::Slice(ptr, len) => {
                into.push(ptr.into());
                into.push(len.into());
            }
        }
    }
}

/// The undefined value of a type.
pub(super) fn undef(ty: BasicTypeEnum<'_>) -> BasicValueEnum<'_> {
    match ty {
        BasicTypeEnum::ArrayType(t) => t.get_undef().into(),
        BasicTypeEnum::FloatType(t) => t.get_undef().into(),
        BasicTypeEnum::IntType(t) => t.get_undef().into(),
        BasicTypeEnum::PointerType(t) => t.get_undef().into(),
        BasicTypeEnum::StructType(t) => t.get_undef().into(),
        BasicTypeEnum::VectorType(t) => t.get_undef().into(),
        BasicTypeEnum::ScalableVectorType(t) => t.get_undef().into(),
    }
}

impl<'ctx> FunctionLowering<'_, 'ctx> {
    /// A part of a struct or array value.
    pub(super) fn extract_part(
        &self,
        whole: BasicValueEnum<'ctx>,
        index: u32,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        let whole = aggregate(whole);
        Ok(self.builder().build_extract_value(whole, index, "")?)
    }

    /// A struct or array value with one part replaced.
    pub(super) fn insert_part(
        &self,
        whole: BasicValueEnum<'ctx>,
        part: BasicValueEnum<'ctx>,
        index: u32,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        let whole = aggregate(whole);
        let whole = self.builder().build_insert_value(whole, part, index, "")?;
        Ok(whole.as_basic_value_enum())
    }

    /// The lane of a vector.
    pub(super) fn lane(
        &self,
        vector: VectorValue<'ctx>,
        lane: u32,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        let index = self.types().int(32).const_int(lane.into(), false);
        Ok(self.builder().build_extract_element(vector, index, "")?)
    }

    /// A vector with one lane replaced.
    pub(super) fn with_lane(
        &self,
        vector: VectorValue<'ctx>,
        lane: u32,
        value: BasicValueEnum<'ctx>,
    ) -> Result<VectorValue<'ctx>, BackendError> {
        let index = self.types().int(32).const_int(lane.into(), false);
        Ok(self
            .builder()
            .build_insert_element(vector, value, index, "")?)
    }

    /// The memory form of a value, to be put into a struct or an array.
    pub(super) fn to_memory(
        &self,
        value: Lowered<'ctx>,
        ty: Type,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        let builder = self.builder();
        match *self.types().table().data(ty) {
            TypeData::Scalar(scalar) if scalar.is_bool() => {
                let byte = self.types().int(8);
                Ok(builder
                    .build_int_z_extend(value.one().into_int_value(), byte, "")?
                    .into())
            }
            TypeData::Vector { element, lanes } => {
                let value = value.one();
                match lanes_per_piece(element, lanes) {
                    None => Ok(value),
                    Some(piece) => {
                        self.vector_to_pieces(value, ty, self.types().vector(element, piece))
                    }
                }
            }
            TypeData::Slice { space, .. } => {
                let (ptr, len) = value.slice();
                let len = builder.build_int_z_extend_or_bit_cast(len, self.types().int(64), "")?;
                let pair = undef(self.types().slice_memory(space).into());
                let pair = self.insert_part(pair, ptr.into(), 0)?;
                self.insert_part(pair, len.into(), 1)
            }
            TypeData::Unit
            | TypeData::Scalar(_)
            | TypeData::Array { .. }
            | TypeData::Struct(_)
            | TypeData::Pointer { .. }
            | TypeData::Param(_) => Ok(value.one()),
        }
    }

    /// The value whose memory form `value` is, taken out of a struct or an array.
    pub(super) fn value_from_memory(
        &self,
        value: BasicValueEnum<'ctx>,
        ty: Type,
    ) -> Result<Lowered<'ctx>, BackendError> {
        let builder = self.builder();
        match *self.types().table().data(ty) {
            TypeData::Scalar(scalar) if scalar.is_bool() => Ok(Lowered::One(
                builder
                    .build_int_truncate(value.into_int_value(), self.types().int(1), "")?
                    .into(),
            )),
            TypeData::Vector { element, lanes } => match lanes_per_piece(element, lanes) {
                None => Ok(Lowered::One(value)),
                Some(piece) => self.vector_from_pieces(value, ty, (lanes, piece)),
            },
            TypeData::Slice { wide, .. } => {
                let ptr = self.extract_part(value, 0)?.into_pointer_value();
                let len = self.extract_part(value, 1)?.into_int_value();
                let len_type = self.types().slice_length(wide);
                let len = builder.build_int_truncate_or_bit_cast(len, len_type, "")?;
                Ok(Lowered::Slice(ptr, len))
            }
            TypeData::Unit
            | TypeData::Scalar(_)
            | TypeData::Array { .. }
            | TypeData::Struct(_)
            | TypeData::Pointer { .. }
            | TypeData::Param(_) => Ok(Lowered::One(value)),
        }
    }

    /// The array of smaller vectors that a large vector is in memory.
    fn vector_to_pieces(
        &self,
        value: BasicValueEnum<'ctx>,
        ty: Type,
        piece: BasicTypeEnum<'ctx>,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        let vector = value.into_vector_value();
        let empty = undef(piece).into_vector_value();
        let size = empty.get_type().get_size();
        let mut array = undef(self.types().memory(ty)?);
        for first in (0..vector.get_type().get_size()).step_by(size as usize) {
            let mut part = empty;
            for lane in 0..size {
                part = self.with_lane(part, lane, self.lane(vector, first + lane)?)?;
            }
            array = self.insert_part(array, part.into(), first / size)?;
        }
        Ok(array)
    }

    fn vector_from_pieces(
        &self,
        array: BasicValueEnum<'ctx>,
        ty: Type,
        (lanes, piece): (u8, u8),
    ) -> Result<Lowered<'ctx>, BackendError> {
        let mut vector = undef(self.types().value(ty)?).into_vector_value();
        for lane in 0..u32::from(lanes) {
            let part = self.extract_part(array, lane / u32::from(piece))?;
            let value = self.lane(part.into_vector_value(), lane % u32::from(piece))?;
            vector = self.with_lane(vector, lane, value)?;
        }
        Ok(Lowered::One(vector.into()))
    }

    /// The zero of a type.
    pub(super) fn zero(&self, ty: Type) -> Result<Lowered<'ctx>, BackendError> {
        Ok(match self.types().table().as_slice(ty) {
            Some((elements, wide)) => Lowered::Slice(
                self.types().pointer(elements.space).const_null(),
                self.types().slice_length(wide).const_zero(),
            ),
            None => Lowered::One(self.types().value(ty)?.const_zero()),
        })
    }
}
