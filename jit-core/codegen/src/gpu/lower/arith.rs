//! Constants, arithmetic, comparisons and selections.
//!
//! Everything is lowered for scalars; a vector is its lanes one by one, which is how PTX computes
//! (LLVM packs pairs of halves again where that pays). `f16` and `bf16` are computed in `f32` and
//! rounded: for `+ - * /` and `sqrt` that gives the correctly rounded result, since `f32` has more
//! than twice their digits plus two.

use inkwell::IntPredicate;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{
    BasicValue as _, BasicValueEnum, FastMathFlags, InstructionOpcode, IntValue,
};

use kiln_ir::legal::Proved as _;
use kiln_ir::{BinaryOp, CompareOp, Constant, FastMath, FloatOp, Scalar, Type, UnaryOp, Value};

use super::FunctionLowering;
use super::value::Lowered;
use crate::llvm::error::BackendError;
use crate::llvm::operations::{by_sign, float_predicate, int_predicate, quotient_flags, sum_flags};

impl<'ctx> FunctionLowering<'_, 'ctx> {
    pub(super) fn lower_const(
        &self,
        constant: Constant,
        ty: Type,
    ) -> Result<Lowered<'ctx>, BackendError> {
        let scalar = || self.types().table().scalar_of(ty);
        let value: BasicValueEnum<'ctx> = match constant {
            Constant::Zero => return self.zero(ty),
            Constant::Bool(b) => self.types().int(1).const_int(b.into(), false).into(),
            Constant::Int(n) if scalar().is_float() => {
                self.types().float(scalar()).const_float(n as f64).into()
            }
            Constant::Int(n) => self
                .types()
                .int(scalar().bits())
                .const_int(n as u64, false)
                .into(),
            Constant::Float(x) => self.types().float(scalar()).const_float(x).into(),
        };
        Ok(Lowered::One(value))
    }

    pub(super) fn lower_unary(
        &self,
        op: UnaryOp,
        arg: Value,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        self.unary_scalar(op, self.scalar_of(arg), self.one(arg))
    }

    pub(super) fn lower_binary(
        &self,
        op: BinaryOp,
        [a, b]: [Value; 2],
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        self.binary_scalar(op, self.scalar_of(a), self.one(a), self.one(b))
    }

    fn unary_scalar(
        &self,
        op: UnaryOp,
        scalar: Scalar,
        value: BasicValueEnum<'ctx>,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        let builder = self.builder();
        Ok(match op {
            // The sign bit alone changes, which needs no wider type.
            UnaryOp::Neg if scalar.is_half() => {
                let bits = self.types().int(16);
                let value = builder.build_bit_cast(value, bits, "")?.into_int_value();
                let flipped = builder.build_xor(value, bits.const_int(0x8000, false), "")?;
                builder.build_bit_cast(flipped, self.types().float(scalar), "")?
            }
            UnaryOp::Neg if scalar.is_float() => builder
                .build_float_neg(value.into_float_value(), "")?
                .into(),
            UnaryOp::Neg => builder.build_int_neg(value.into_int_value(), "")?.into(),
            UnaryOp::Not => builder.build_not(value.into_int_value(), "")?.into(),
        })
    }

    fn binary_scalar(
        &self,
        op: BinaryOp,
        scalar: Scalar,
        a: BasicValueEnum<'ctx>,
        b: BasicValueEnum<'ctx>,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        if scalar.is_half() {
            let (a, b) = (self.widen_half(a)?, self.widen_half(b)?);
            let wide = self.float_binary(op, a, b)?;
            return self.round_to_half(wide, scalar);
        }
        if scalar.is_float() {
            return self.float_binary(op, a, b);
        }
        let signed = scalar.is_signed_int();
        Ok(self
            .int_binary(op, signed, a.into_int_value(), b.into_int_value())?
            .into())
    }

    /// `f16` or `bf16` as `f32`, which is exact.
    pub(crate) fn widen_half(
        &self,
        value: BasicValueEnum<'ctx>,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        let wide = self.types().float(Scalar::F32);
        let value = value.into_float_value();
        Ok(self.builder().build_float_ext(value, wide, "")?.into())
    }

    /// A float of more digits as `f16` or `bf16`, rounded to nearest-even.
    pub(crate) fn round_to_half(
        &self,
        value: BasicValueEnum<'ctx>,
        scalar: Scalar,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        let half = self.types().float(scalar);
        let value = value.into_float_value();
        Ok(self.builder().build_float_trunc(value, half, "")?.into())
    }

    fn float_binary(
        &self,
        op: BinaryOp,
        a: BasicValueEnum<'ctx>,
        b: BasicValueEnum<'ctx>,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        let op = op.on_floats().proved("an operation of floats");
        let opcode = match op {
            FloatOp::Add => InstructionOpcode::FAdd,
            FloatOp::Sub => InstructionOpcode::FSub,
            FloatOp::Mul => InstructionOpcode::FMul,
            FloatOp::Div => InstructionOpcode::FDiv,
            FloatOp::Min => return self.llvm_value("llvm.minnum", &[a.get_type()], &[a, b]),
            FloatOp::Max => return self.llvm_value("llvm.maxnum", &[a.get_type()], &[a, b]),
        };
        let value = self.builder().build_binop(opcode, a, b, "")?;
        let is_f32 = a.get_type() == self.types().float(Scalar::F32).into();
        let flags = match op {
            FloatOp::Div if is_f32 => quotient_flags(self.fast),
            FloatOp::Div => FastMathFlags::empty(),
            _ if self.module.options.contract => sum_flags(self.fast | FastMath::CONTRACT),
            _ => sum_flags(self.fast),
        };
        if let Some(instruction) = value.as_instruction_value() {
            // Float operations take the flags, which is all that can be refused.
            let _ = instruction.set_fast_math_flags(flags);
        }
        Ok(value)
    }

    fn int_binary(
        &self,
        op: BinaryOp,
        signed: bool,
        a: IntValue<'ctx>,
        b: IntValue<'ctx>,
    ) -> Result<IntValue<'ctx>, BackendError> {
        let builder = self.builder();
        let pick = |name| -> Result<IntValue<'ctx>, BackendError> {
            let ty: BasicTypeEnum<'ctx> = a.get_type().into();
            Ok(self
                .llvm_value(name, &[ty], &[a.into(), b.into()])?
                .into_int_value())
        };
        Ok(match op {
            BinaryOp::Add => builder.build_int_add(a, b, "")?,
            BinaryOp::Sub => builder.build_int_sub(a, b, "")?,
            BinaryOp::Mul => builder.build_int_mul(a, b, "")?,
            BinaryOp::Div => {
                let b = self.safe_divisor(signed, a, b)?;
                let opcode = by_sign(signed, InstructionOpcode::SDiv, InstructionOpcode::UDiv);
                builder.build_binop(opcode, a, b, "")?.into_int_value()
            }
            BinaryOp::Rem => {
                let b = self.safe_divisor(signed, a, b)?;
                let opcode = by_sign(signed, InstructionOpcode::SRem, InstructionOpcode::URem);
                builder.build_binop(opcode, a, b, "")?.into_int_value()
            }
            BinaryOp::Min => pick(by_sign(signed, "llvm.smin", "llvm.umin"))?,
            BinaryOp::Max => pick(by_sign(signed, "llvm.smax", "llvm.umax"))?,
            BinaryOp::And => builder.build_and(a, b, "")?,
            BinaryOp::Or => builder.build_or(a, b, "")?,
            BinaryOp::Xor => builder.build_xor(a, b, "")?,
            BinaryOp::Shl => {
                let b = self.shift_amount(b)?;
                builder.build_left_shift(a, b, "")?
            }
            BinaryOp::Shr => {
                let b = self.shift_amount(b)?;
                builder.build_right_shift(a, b, signed, "")?
            }
        })
    }

    /// A shift counts modulo the width; the widths are powers of two.
    fn shift_amount(&self, amount: IntValue<'ctx>) -> Result<IntValue<'ctx>, BackendError> {
        let ty = amount.get_type();
        let mask = ty.const_int(u64::from(ty.get_bit_width()) - 1, false);
        Ok(self.builder().build_and(amount, mask, "")?)
    }

    /// The divisor, or 1 where the division would have no result: by zero, and `MIN / -1`.
    fn safe_divisor(
        &self,
        signed: bool,
        dividend: IntValue<'ctx>,
        divisor: IntValue<'ctx>,
    ) -> Result<IntValue<'ctx>, BackendError> {
        let builder = self.builder();
        let ty = divisor.get_type();
        let is = |a, b| builder.build_int_compare(IntPredicate::EQ, a, b, "");
        let mut undefined = is(divisor, ty.const_zero())?;
        if signed {
            let smallest = ty.const_int(1 << (ty.get_bit_width() - 1), false);
            let minus_one = is(divisor, ty.const_all_ones())?;
            let overflows = builder.build_and(is(dividend, smallest)?, minus_one, "")?;
            undefined = builder.build_or(undefined, overflows, "")?;
        }
        Ok(builder
            .build_select(undefined, ty.const_int(1, false), divisor, "")?
            .into_int_value())
    }

    pub(super) fn lower_compare(
        &self,
        op: CompareOp,
        [a, b]: [Value; 2],
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        let ty = self.type_of(a);
        let (a, b) = (self.one(a), self.one(b));
        let builder = self.builder();
        if self.types().table().is_pointer(ty) {
            let (a, b) = (a.into_pointer_value(), b.into_pointer_value());
            let predicate = int_predicate(op, false);
            return Ok(builder.build_int_compare(predicate, a, b, "")?.into());
        }
        let scalar = self.types().table().scalar_of(ty);
        if !scalar.is_float() {
            let predicate = int_predicate(op, scalar.is_signed_int());
            let (a, b) = (a.into_int_value(), b.into_int_value());
            return Ok(builder.build_int_compare(predicate, a, b, "")?.into());
        }
        let (a, b) = if scalar.is_half() {
            (self.widen_half(a)?, self.widen_half(b)?)
        } else {
            (a, b)
        };
        let (a, b) = (a.into_float_value(), b.into_float_value());
        Ok(builder
            .build_float_compare(float_predicate(op), a, b, "")?
            .into())
    }

    pub(super) fn lower_select(
        &self,
        cond: Value,
        if_true: Value,
        if_false: Value,
    ) -> Result<Lowered<'ctx>, BackendError> {
        let cond = self.one(cond).into_int_value();
        let builder = self.builder();
        match self.get(if_true) {
            Lowered::One(a) => {
                let b = self.one(if_false);
                Ok(Lowered::One(builder.build_select(cond, a, b, "")?))
            }
            Lowered::Slice(ptr_a, len_a) => {
                let (ptr_b, len_b) = self.get(if_false).slice();
                let ptr = builder.build_select(cond, ptr_a, ptr_b, "")?;
                let len = builder.build_select(cond, len_a, len_b, "")?;
                Ok(Lowered::Slice(
                    ptr.into_pointer_value(),
                    len.into_int_value(),
                ))
            }
        }
    }
}
