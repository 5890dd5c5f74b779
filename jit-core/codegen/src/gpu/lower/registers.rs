//! Values in the registers of inline PTX.
//!
//! A `bool` is a 32-bit 0 or 1, a `f16` or `bf16` its 16 bits, an 8-bit integer is extended to 16 bits; an
//! address is 64 bits. The lanes of a vector, and the parts of an array or a tuple, are registers of their
//! own, one after the other.

use inkwell::IntPredicate;
use inkwell::types::BasicTypeEnum;
use inkwell::values::BasicValueEnum;

use kiln_ir::{Scalar, Type};

use super::FunctionLowering;
use super::value::{Lowered, undef};
use crate::llvm::error::BackendError;

impl<'ctx> FunctionLowering<'_, 'ctx> {
    /// The parts of a value of a type, if it has any.
    fn parts_of(&self, ty: Type) -> Vec<Type> {
        let types = self.types().table();
        (0..).map_while(|index| types.part(ty, index)).collect()
    }

    /// The registers of a value.
    pub(in crate::gpu) fn push_registers(
        &self,
        ty: Type,
        value: BasicValueEnum<'ctx>,
        into: &mut Vec<BasicValueEnum<'ctx>>,
    ) -> Result<(), BackendError> {
        let parts = self.parts_of(ty);
        if parts.is_empty() {
            into.push(self.to_register(ty, value)?);
        }
        for (index, part) in (0..).zip(parts) {
            let value = match value {
                BasicValueEnum::VectorValue(vector) => self.lane(vector, index)?,
                _ => {
                    let value = self.extract_part(value, index)?;
                    self.value_from_memory(value, part)?.one()
                }
            };
            self.push_registers(part, value, into)?;
        }
        Ok(())
    }

    /// What inline PTX gives for a value of a type: nothing, a register, or a struct of registers.
    pub(in crate::gpu) fn register_types(
        &self,
        ty: Type,
    ) -> Result<Option<BasicTypeEnum<'ctx>>, BackendError> {
        let mut list = Vec::new();
        self.push_register_types(ty, &mut list)?;
        Ok(match list[..] {
            [] => None,
            [one] => Some(one),
            _ => Some(self.context().struct_type(&list, false).into()),
        })
    }

    fn push_register_types(
        &self,
        ty: Type,
        into: &mut Vec<BasicTypeEnum<'ctx>>,
    ) -> Result<(), BackendError> {
        let parts = self.parts_of(ty);
        match ty.as_scalar() {
            _ if ty == Type::UNIT => {}
            Some(scalar) => into.push(self.register_type(scalar)),
            None if parts.is_empty() => into.push(self.types().value(ty)?),
            None => {
                for part in parts {
                    self.push_register_types(part, into)?;
                }
            }
        }
        Ok(())
    }

    /// The value of a type from its register, or from the struct of its registers.
    pub(in crate::gpu) fn value_from_registers(
        &self,
        ty: Type,
        given: BasicValueEnum<'ctx>,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        let mut registers = Vec::new();
        match given {
            BasicValueEnum::StructValue(several) => {
                for index in 0..several.get_type().count_fields() {
                    registers.push(self.extract_part(given, index)?);
                }
            }
            one => registers.push(one),
        }
        self.value_of(ty, &mut registers.into_iter())
    }

    fn value_of(
        &self,
        ty: Type,
        registers: &mut impl Iterator<Item = BasicValueEnum<'ctx>>,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        let parts = self.parts_of(ty);
        if parts.is_empty() {
            let too_few = || BackendError::new("lower", "a result of too few registers");
            return self.value_from_register(ty, registers.next().ok_or_else(too_few)?);
        }
        let mut whole = undef(self.types().value(ty)?);
        for (index, part) in (0..).zip(parts) {
            let value = self.value_of(part, registers)?;
            whole = match whole {
                BasicValueEnum::VectorValue(vector) => self.with_lane(vector, index, value)?.into(),
                _ => {
                    let value = self.to_memory(Lowered::One(value), part)?;
                    self.insert_part(whole, value, index)?
                }
            };
        }
        Ok(whole)
    }

    /// The type of the PTX register that holds a scalar in inline PTX.
    fn register_type(&self, scalar: Scalar) -> BasicTypeEnum<'ctx> {
        match scalar {
            Scalar::Bool => self.types().int(32).into(),
            Scalar::I8 | Scalar::U8 | Scalar::F16 | Scalar::BF16 => self.types().int(16).into(),
            Scalar::I16
            | Scalar::I32
            | Scalar::I64
            | Scalar::U16
            | Scalar::U32
            | Scalar::U64
            | Scalar::F32
            | Scalar::F64 => self.types().scalar(scalar),
        }
    }

    fn to_register(
        &self,
        ty: Type,
        value: BasicValueEnum<'ctx>,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        let Some(scalar) = ty.as_scalar() else {
            return Ok(value);
        };
        let to = self.register_type(scalar);
        match (value, to) {
            (BasicValueEnum::IntValue(int), BasicTypeEnum::IntType(to)) => {
                let signed = scalar.is_signed_int();
                let builder = self.builder();
                Ok(builder
                    .build_int_cast_sign_flag(int, to, signed, "")?
                    .into())
            }
            _ => Ok(self.builder().build_bit_cast(value, to, "")?),
        }
    }

    fn value_from_register(
        &self,
        ty: Type,
        value: BasicValueEnum<'ctx>,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        let builder = self.builder();
        let to = self.types().value(ty)?;
        match (value, to) {
            (BasicValueEnum::IntValue(int), _) if ty == Type::BOOL => {
                let zero = int.get_type().const_zero();
                let set = builder.build_int_compare(IntPredicate::NE, int, zero, "")?;
                Ok(set.into())
            }
            (BasicValueEnum::IntValue(int), BasicTypeEnum::IntType(to)) => {
                Ok(builder.build_int_cast_sign_flag(int, to, false, "")?.into())
            }
            _ => Ok(builder.build_bit_cast(value, to, "")?),
        }
    }
}
