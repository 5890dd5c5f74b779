//! Conversions between integers and floats of what is 0 or 1.
//!
//! A `bool` that becomes a number is `selp 1, 0` in PTX. Where a kernel also compares such a number
//! with 0, `ptxas` (13.0 to 13.5) takes the numbers of this kind for predicates again, and with them
//! each `cvt` of one for a copy: `cvt.rn.f32.u32` of 1, used as bits, is 1 instead of 1.0, its
//! negation of 0 is 0.0 instead of -0.0, and `cvt.f64.f32` of the smallest float is 1.0. In SASS there is
//! one `SEL` or `FSEL` and no `I2F`.
//!
//! So an integer that is 0 or 1 becomes a float by `selp` of the two floats, and one that is
//! taken for the bits of a float is counted (`popc`), which gives the same number and hides what
//! it is.

use inkwell::IntPredicate;
use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::intrinsics::Intrinsic;
use inkwell::module::Module;
use inkwell::types::{AnyTypeEnum, BasicTypeEnum, FloatType};
use inkwell::values::{
    BasicValue as _, BasicValueEnum, CallSiteValue, InstructionOpcode, InstructionValue, IntValue,
};

use super::{instructions, is_choice, replace, sources};
use crate::llvm::error::BackendError;

/// The intrinsics by which integers become `f32`, rounded towards zero.
const INTS_TO_F32: [&str; 4] = [
    "llvm.nvvm.i2f.rz",
    "llvm.nvvm.ui2f.rz",
    "llvm.nvvm.ll2f.rz",
    "llvm.nvvm.ull2f.rz",
];

/// Replaces all conversions of the kind.
pub(super) fn convert_by_selecting<'ctx>(
    context: &'ctx Context,
    module: &Module<'ctx>,
) -> Result<(), BackendError> {
    let builder = context.create_builder();
    let kinds = [
        InstructionOpcode::UIToFP,
        InstructionOpcode::SIToFP,
        InstructionOpcode::Call,
    ];
    for conversion in instructions(module, &kinds) {
        if let Some((integer, float)) = converted(conversion) {
            builder.position_before(&conversion);
            select(&builder, conversion, integer, float)?;
        }
    }
    for cast in instructions(module, &[InstructionOpcode::BitCast]) {
        if let Some(integer) = taken_for_bits(cast) {
            builder.position_before(&cast);
            let counted = counted(module, &builder, integer)?;
            let set = cast.set_operand(0, counted);
            debug_assert!(set, "a cast has an operand");
        }
    }
    Ok(())
}

/// The integer and the float of a conversion whose integer is 0 or 1.
fn converted<'ctx>(
    conversion: InstructionValue<'ctx>,
) -> Option<(IntValue<'ctx>, FloatType<'ctx>)> {
    let converts = conversion.get_opcode() != InstructionOpcode::Call || is_rounding(conversion);
    let BasicValueEnum::IntValue(integer) = conversion.get_operand(0)?.value()? else {
        return None;
    };
    let BasicTypeEnum::FloatType(float) = BasicTypeEnum::try_from(conversion.get_type()).ok()?
    else {
        return None;
    };
    let varies = !integer.is_const();
    (converts && varies && is_boolean(integer)).then_some((integer, float))
}

fn is_rounding(call: InstructionValue<'_>) -> bool {
    let site = CallSiteValue::try_from(call).ok();
    let callee = site.and_then(|site| site.get_called_fn_value());
    callee.is_some_and(|callee| {
        let name = callee.get_name().to_bytes();
        INTS_TO_F32.iter().any(|known| known.as_bytes() == name)
    })
}

/// The integer whose bits are taken for a float, if it is 0 or 1.
fn taken_for_bits(cast: InstructionValue<'_>) -> Option<IntValue<'_>> {
    let BasicValueEnum::IntValue(integer) = cast.get_operand(0)?.value()? else {
        return None;
    };
    let to_float = cast.get_type().is_float_type();
    (to_float && !integer.is_const() && is_boolean(integer)).then_some(integer)
}

/// Whether an integer can only be 0 or 1, and `ptxas` may see it.
fn is_boolean(integer: IntValue<'_>) -> bool {
    let passed = |instruction: InstructionValue<'_>| {
        let is_bit =
            |ty: AnyTypeEnum<'_>| ty.is_int_type() && ty.into_int_type().get_bit_width() == 1;
        let kept = [
            InstructionOpcode::ZExt,
            InstructionOpcode::Trunc,
            InstructionOpcode::And,
            InstructionOpcode::Or,
            InstructionOpcode::Xor,
        ];
        let is_kept = kept.contains(&instruction.get_opcode());
        !is_bit(instruction.get_type()) && (is_kept || is_choice(instruction))
    };
    let is_zero_or_one = |source: &BasicValueEnum<'_>| match source {
        BasicValueEnum::IntValue(value) => {
            let bit = value.get_type().get_bit_width() == 1;
            bit || value
                .get_zero_extended_constant()
                .is_some_and(|value| value <= 1)
        }
        _ => false,
    };
    let sources = sources(integer.into(), &passed);
    sources.is_some_and(|sources| sources.iter().all(is_zero_or_one))
}

/// Puts a choice of two floats in the place of a conversion.
fn select<'ctx>(
    builder: &Builder<'ctx>,
    conversion: InstructionValue<'ctx>,
    integer: IntValue<'ctx>,
    float: FloatType<'ctx>,
) -> Result<(), BackendError> {
    let is_bit = integer.get_type().get_bit_width() == 1;
    let condition = if is_bit {
        integer
    } else {
        let zero = integer.get_type().const_zero();
        builder.build_int_compare(IntPredicate::NE, integer, zero, "")?
    };
    // One bit that is signed is -1.
    let signed = is_bit && conversion.get_opcode() == InstructionOpcode::SIToFP;
    let one = float.const_float(if signed { -1.0 } else { 1.0 });
    let selected = builder.build_select(condition, one, float.const_zero(), "")?;
    // LLVM may know which of them it is, and then so does `ptxas`.
    if let Some(selected) = selected.as_instruction_value() {
        replace(conversion, selected);
    }
    Ok(())
}

/// As many bits as are set in what is 0 or 1: the same number.
fn counted<'ctx>(
    module: &Module<'ctx>,
    builder: &Builder<'ctx>,
    integer: IntValue<'ctx>,
) -> Result<IntValue<'ctx>, BackendError> {
    let missing = || BackendError::new("optimize", "LLVM has no `llvm.ctpop`");
    let count = Intrinsic::find("llvm.ctpop")
        .and_then(|count| count.get_declaration(module, &[integer.get_type().into()]))
        .ok_or_else(missing)?;
    let counted = builder.build_call(count, &[integer.into()], "")?;
    let counted = counted.try_as_basic_value().basic();
    Ok(counted.ok_or_else(missing)?.into_int_value())
}
