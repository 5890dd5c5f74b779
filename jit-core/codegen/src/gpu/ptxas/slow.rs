//! Operations of which LLVM's code generator makes long code, though it makes short code of others that give the same.
//!
//! The zeros below the lowest one it counts behind a branch, as it does not know that the instructions it writes are
//! right for 0. They are the zeros above the highest one of the bits in the other order: two instructions.
//!
//! The zeros above the highest one are what is left of the width when all bits below it are ones. LLVM knows that the
//! ones are counted, and not what comes before: ten operations for one.

use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::values::{
    BasicValue as _, BasicValueEnum, CallSiteValue, InstructionOpcode, InstructionValue, IntValue,
};

use super::{instructions, replace};
use crate::llvm::ask::{call_arguments, declared, value_of};
use crate::llvm::error::BackendError;

/// Counts zeros below the lowest one without a branch, and those above the highest by their own instruction.
///
/// # Errors
/// If LLVM's builder refuses, which it does not.
pub(super) fn write_short<'ctx>(
    context: &'ctx Context,
    module: &Module<'ctx>,
) -> Result<(), BackendError> {
    let builder = context.create_builder();
    for call in instructions(module, &[InstructionOpcode::Call]) {
        builder.position_before(&call);
        if let Some(number) = argument_of("llvm.cttz", call) {
            let reversed = called(module, &builder, "llvm.bitreverse", &[number.into()])?;
            count_above(module, &builder, call, reversed)?;
        } else if let Some(number) = argument_of("llvm.ctpop", call).and_then(counted_above) {
            count_above(module, &builder, call, number.into())?;
        }
    }
    Ok(())
}

/// The number that is given to a call of an intrinsic for 32 or 64 bits.
fn argument_of<'ctx>(name: &str, call: InstructionValue<'ctx>) -> Option<IntValue<'ctx>> {
    let site = CallSiteValue::try_from(call).ok()?;
    let callee = site.get_called_fn_value()?;
    let width = callee.get_name().to_bytes().strip_prefix(name.as_bytes())?;
    match call.get_operand(0)?.value()? {
        BasicValueEnum::IntValue(number) if [&b".i32"[..], b".i64"].contains(&width) => {
            Some(number)
        }
        _ => None,
    }
}

/// The number whose zeros above the highest one are the ones of `counted`: the opposite of all bits from its
/// highest one down, which steps of half the width, a quarter, to one bit have filled.
fn counted_above(counted: IntValue<'_>) -> Option<IntValue<'_>> {
    let (mut filled, ones) = operands(counted, InstructionOpcode::Xor)?;
    if !ones.is_const() || ones != ones.get_type().const_all_ones() {
        return None;
    }
    let mut by = u64::from(filled.get_type().get_bit_width()) / 2;
    while by > 0 {
        filled = filled_by(filled, by)?;
        by /= 2;
    }
    Some(filled)
}

/// `x` of an `x | x >> by`.
fn filled_by(value: IntValue<'_>, by: u64) -> Option<IntValue<'_>> {
    let (one, other) = operands(value, InstructionOpcode::Or)?;
    let is_shifted = |shifted: IntValue<'_>, x: IntValue<'_>| {
        let amount = operands(shifted, InstructionOpcode::LShr)
            .filter(|&(of, _)| of == x)
            .and_then(|(_, amount)| amount.get_zero_extended_constant());
        amount == Some(by)
    };
    if is_shifted(one, other) {
        Some(other)
    } else {
        is_shifted(other, one).then_some(one)
    }
}

/// The operands of an operation on two integers.
pub(super) fn operands<'ctx>(
    value: IntValue<'ctx>,
    operation: InstructionOpcode,
) -> Option<(IntValue<'ctx>, IntValue<'ctx>)> {
    let instruction = value.as_instruction()?;
    if instruction.get_opcode() != operation {
        return None;
    }
    match (
        instruction.get_operand(0)?.value()?,
        instruction.get_operand(1)?.value()?,
    ) {
        (BasicValueEnum::IntValue(one), BasicValueEnum::IntValue(other)) => Some((one, other)),
        _ => None,
    }
}

fn count_above<'ctx>(
    module: &Module<'ctx>,
    builder: &Builder<'ctx>,
    call: InstructionValue<'ctx>,
    number: BasicValueEnum<'ctx>,
) -> Result<(), BackendError> {
    let no = module.get_context().bool_type().const_zero();
    let count = called(module, builder, "llvm.ctlz", &[number, no.into()])?;
    if let Some(count) = count.as_instruction_value() {
        replace(call, count);
    }
    Ok(())
}

/// A call of an intrinsic that the type of its first argument selects.
fn called<'ctx>(
    module: &Module<'ctx>,
    builder: &Builder<'ctx>,
    name: &str,
    args: &[BasicValueEnum<'ctx>],
) -> Result<BasicValueEnum<'ctx>, BackendError> {
    let declaration = declared(module, name, &[args[0].get_type()])?;
    value_of(
        builder.build_call(declaration, &call_arguments(args), "")?,
        name,
    )
}
