//! Conversions between scalars, and reinterpretation of bits.

use std::cmp::Ordering;

use inkwell::values::{BasicValueEnum, IntValue};
use inkwell::{FloatPredicate, IntPredicate};

use kiln_ir::{Half, Scalar, Type, Value};

use super::FunctionLowering;
use crate::llvm::error::BackendError;

/// The digits of an `f32`: an integer of as many bits converts exactly.
const F32_DIGITS: u32 = 24;

/// Integers of as many bits, or fewer, are in the range of `f16`, or have too many digits to be taken for one of it.
const F16_BITS: u32 = 16;

impl<'ctx> FunctionLowering<'_, 'ctx> {
    pub(super) fn lower_cast(
        &self,
        arg: Value,
        result: Type,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        let from = self.scalar_of(arg);
        let to = self.types().table().scalar_of(result);
        let value = self.one(arg);
        match (from.is_float(), to.is_float()) {
            _ if from == to => Ok(value),
            (false, false) => {
                let signed = from.is_signed_int();
                Ok(self
                    .resize(value.into_int_value(), to.bits(), signed)?
                    .into())
            }
            (false, true) => self.int_to_float(value.into_int_value(), from, to),
            (true, false) => self.float_to_int(value, from, to),
            (true, true) => self.float_to_float(value, from, to),
        }
    }

    fn int_to_float(
        &self,
        value: IntValue<'ctx>,
        from: Scalar,
        to: Scalar,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        let Some(half) = to.as_half() else {
            return self.convert_int(value, from, to);
        };
        // Through f32. For f16 that cannot round twice: integers f32 has to round are beyond the
        // range of f16. bf16 has that range, so there the first step keeps what was lost.
        let twice = from.bits() > F32_DIGITS;
        let wide = match half {
            Half::BF16 if twice => self.int_to_odd_f32(value, from)?,
            Half::F16 | Half::BF16 => self.convert_int(value, from, Scalar::F32)?,
        };
        let rounded = self.round_to_half(wide, to)?;
        match half == Half::F16 && from.bits() > F16_BITS {
            true => self.beyond_f16(wide, rounded, from.is_signed_int()),
            false => Ok(rounded),
        }
    }

    /// What an `f32` is as `f16`, once more said to be infinite beyond its range. LLVM 22 takes an integer of few digits, as
    /// after a shift, for one that converts to `f16` exactly, and back to `f32`, however large it is
    /// (`isKnownExactCastIntToFP` of InstCombine looks at digits alone).
    fn beyond_f16(
        &self,
        wide: BasicValueEnum<'ctx>,
        rounded: BasicValueEnum<'ctx>,
        signed: bool,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        /// Halfway between the largest `f16` and the next that there would be.
        const INFINITE: f64 = 65520.0;
        let (wide, builder) = (wide.into_float_value(), self.builder());
        let half = self.types().float(Scalar::F16);
        let ends = [(FloatPredicate::OGE, 1.0), (FloatPredicate::OLE, -1.0)];
        let mut value = rounded;
        for (predicate, sign) in ends.into_iter().take(1 + usize::from(signed)) {
            let end = wide.get_type().const_float(sign * INFINITE);
            let is_beyond = builder.build_float_compare(predicate, wide, end, "")?;
            let infinite = half.const_float(sign * f64::INFINITY);
            value = builder.build_select(is_beyond, infinite.into(), value, "")?;
        }
        Ok(value)
    }

    fn convert_int(
        &self,
        value: IntValue<'ctx>,
        from: Scalar,
        to: Scalar,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        let ty = self.types().float(to);
        let builder = self.builder();
        Ok(if from.is_signed_int() {
            builder.build_signed_int_to_float(value, ty, "")?.into()
        } else {
            builder.build_unsigned_int_to_float(value, ty, "")?.into()
        })
    }

    /// An integer as `f32` rounded to odd: towards zero, with the last digit set if anything was
    /// lost. Rounding that to fewer digits gives the same as rounding the integer (Boldo and
    /// Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
    fn int_to_odd_f32(
        &self,
        value: IntValue<'ctx>,
        from: Scalar,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        let ty = self.types().float(Scalar::F32);
        let builder = self.builder();
        let rounded = (self.module.dialect).towards_zero(&self.point(), value, from)?;
        let back = self
            .float_to_int(rounded, Scalar::F32, from)?
            .into_int_value();
        let lost = builder.build_int_compare(IntPredicate::NE, back, value, "")?;
        let int = self.types().int(32);
        let bits = builder.build_bit_cast(rounded, int, "")?.into_int_value();
        let last = builder.build_int_z_extend(lost, int, "")?;
        let odd = builder.build_or(bits, last, "")?;
        Ok(builder.build_bit_cast(odd, ty, "")?)
    }

    /// Saturating, NaN to 0.
    fn float_to_int(
        &self,
        value: BasicValueEnum<'ctx>,
        from: Scalar,
        to: Scalar,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        let value = if from.is_half() {
            self.widen_half(value)?
        } else {
            value
        };
        let name = if to.is_signed_int() {
            "llvm.fptosi.sat"
        } else {
            "llvm.fptoui.sat"
        };
        let ty = self.types().scalar(to);
        self.llvm_value(name, &[ty, value.get_type()], &[value])
    }

    fn float_to_float(
        &self,
        value: BasicValueEnum<'ctx>,
        from: Scalar,
        to: Scalar,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        let builder = self.builder();
        let (value, from) = if from.is_half() {
            (self.widen_half(value)?, Scalar::F32)
        } else {
            (value, from)
        };
        let ty = self.types().float(to);
        Ok(match to.bits().cmp(&from.bits()) {
            _ if to.is_half() => self.round_to_half(value, to)?,
            Ordering::Equal => value,
            Ordering::Greater => builder
                .build_float_ext(value.into_float_value(), ty, "")?
                .into(),
            Ordering::Less => builder
                .build_float_trunc(value.into_float_value(), ty, "")?
                .into(),
        })
    }

    pub(super) fn lower_bitcast(
        &self,
        arg: Value,
        result: Type,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        let builder = self.builder();
        let value = self.one(arg);
        let is_pointer = |ty| self.types().table().is_pointer(ty);
        let to = self.types().value(result)?;
        let word = self.types().int(64);
        Ok(match (is_pointer(self.type_of(arg)), is_pointer(result)) {
            (true, true) => value,
            (true, false) => {
                let bits = builder.build_ptr_to_int(value.into_pointer_value(), word, "")?;
                builder.build_bit_cast(bits, to, "")?
            }
            (false, true) => {
                let bits = builder.build_bit_cast(value, word, "")?.into_int_value();
                let ty = to.into_pointer_type();
                builder.build_int_to_ptr(bits, ty, "")?.into()
            }
            (false, false) => builder.build_bit_cast(value, to, "")?,
        })
    }
}
