//! What an IR value is while a function is lowered, and its way in and out of memory form.
//!
//! See `types` for the two forms of a type.

use inkwell::types::BasicTypeEnum;
use inkwell::values::{
    BasicMetadataValueEnum, BasicValueEnum, FloatValue, IntValue, PointerValue, VectorValue,
};

use kiln_ir::{Type, TypeData};

use super::{FunctionLowering, unexpected};
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
    /// The single value.
    pub(super) fn one(self) -> Result<BasicValueEnum<'ctx>, BackendError> {
        match self {
            Lowered::One(value) => Ok(value),
            Lowered::Slice(..) => Err(unexpected("a slice where a single value is needed")),
        }
    }

    /// The address and length of a slice.
    pub(super) fn slice(self) -> Result<(PointerValue<'ctx>, IntValue<'ctx>), BackendError> {
        match self {
            Lowered::Slice(ptr, len) => Ok((ptr, len)),
            Lowered::One(_) => Err(unexpected("a single value where a slice is needed")),
        }
    }

    /// Its LLVM values in the order of a call's arguments.
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

/// The arguments of a call as inkwell wants them.
pub(super) fn call_arguments<'ctx>(
    args: &[BasicValueEnum<'ctx>],
) -> Vec<BasicMetadataValueEnum<'ctx>> {
    args.iter().map(|&arg| arg.into()).collect()
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

pub(super) fn as_int(value: BasicValueEnum<'_>) -> Result<IntValue<'_>, BackendError> {
    IntValue::try_from(value).map_err(|()| unexpected("a value that is not an integer"))
}

pub(super) fn as_float(value: BasicValueEnum<'_>) -> Result<FloatValue<'_>, BackendError> {
    FloatValue::try_from(value).map_err(|()| unexpected("a value that is not a float"))
}

pub(super) fn as_pointer(value: BasicValueEnum<'_>) -> Result<PointerValue<'_>, BackendError> {
    PointerValue::try_from(value).map_err(|()| unexpected("a value that is not a pointer"))
}

pub(super) fn as_vector(value: BasicValueEnum<'_>) -> Result<VectorValue<'_>, BackendError> {
    VectorValue::try_from(value).map_err(|()| unexpected("a value that is not a vector"))
}

impl<'ctx> FunctionLowering<'_, 'ctx> {
    /// A part of a struct or array value.
    pub(super) fn extract_part(
        &self,
        aggregate: BasicValueEnum<'ctx>,
        index: u32,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        Ok(match aggregate {
            BasicValueEnum::StructValue(v) => self.builder().build_extract_value(v, index, "")?,
            BasicValueEnum::ArrayValue(v) => self.builder().build_extract_value(v, index, "")?,
            _ => return Err(unexpected("a part of a value that has none")),
        })
    }

    /// A struct or array value with one part replaced.
    pub(super) fn insert_part(
        &self,
        aggregate: BasicValueEnum<'ctx>,
        part: BasicValueEnum<'ctx>,
        index: u32,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        let whole = match aggregate {
            BasicValueEnum::StructValue(v) => {
                self.builder().build_insert_value(v, part, index, "")?
            }
            BasicValueEnum::ArrayValue(v) => {
                self.builder().build_insert_value(v, part, index, "")?
            }
            _ => return Err(unexpected("a part of a value that has none")),
        };
        Ok(match whole {
            inkwell::values::AggregateValueEnum::ArrayValue(v) => v.into(),
            inkwell::values::AggregateValueEnum::StructValue(v) => v.into(),
        })
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
                    .build_int_z_extend(as_int(value.one()?)?, byte, "")?
                    .into())
            }
            TypeData::Vector { element, lanes } => {
                let value = value.one()?;
                match self.types().lanes_per_piece(element, lanes) {
                    None => Ok(value),
                    Some(piece) => {
                        self.vector_to_pieces(value, ty, self.types().vector(element, piece))
                    }
                }
            }
            TypeData::Slice { space, .. } => {
                let (ptr, len) = value.slice()?;
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
            | TypeData::Param(_) => value.one(),
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
                    .build_int_truncate(as_int(value)?, self.types().int(1), "")?
                    .into(),
            )),
            TypeData::Vector { element, lanes } => {
                match self.types().lanes_per_piece(element, lanes) {
                    None => Ok(Lowered::One(value)),
                    Some(piece) => self.vector_from_pieces(value, ty, (lanes, piece)),
                }
            }
            TypeData::Slice { wide, .. } => {
                let ptr = as_pointer(self.extract_part(value, 0)?)?;
                let len = as_int(self.extract_part(value, 1)?)?;
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
        let vector = as_vector(value)?;
        let empty = as_vector(undef(piece))?;
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
        let mut vector = as_vector(undef(self.types().value(ty)?))?;
        for lane in 0..u32::from(lanes) {
            let part = self.extract_part(array, lane / u32::from(piece))?;
            let value = self.lane(as_vector(part)?, lane % u32::from(piece))?;
            vector = self.with_lane(vector, lane, value)?;
        }
        Ok(Lowered::One(vector.into()))
    }

    /// The zero of a type.
    pub(super) fn zero(&self, ty: Type) -> Result<Lowered<'ctx>, BackendError> {
        match *self.types().table().data(ty) {
            TypeData::Slice { space, wide, .. } => Ok(Lowered::Slice(
                self.types().pointer(space).const_null(),
                self.types().slice_length(wide).const_zero(),
            )),
            _ => Ok(Lowered::One(self.types().value(ty)?.const_zero())),
        }
    }
}
