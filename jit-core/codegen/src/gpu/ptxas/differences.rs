//! Absolute differences of integers of up to 32 bits, and sums of them, by the one instruction that GPUs have for both.
//!
//! LLVM's code generator knows `sad` by name alone: `x < y ? y - x : x - y` stays four instructions, and `ptxas` does not
//! find the sum in it either (SASS: `ISETP`, two `IADD3`, another for the sum; `VABSDIFF` is all of them).

use inkwell::IntPredicate;
use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::values::{
    AnyValueEnum, BasicValue as _, BasicValueEnum, InstructionOpcode, InstructionValue, IntValue,
};

use super::slow::operands;
use super::{instructions, replace};
use crate::llvm::ask::{call_arguments, declared, value_of};
use crate::llvm::error::BackendError;

/// The intrinsics of LLVM for it, of unsigned integers and of signed ones.
pub(crate) const SUMS: [&str; 2] = ["llvm.nvvm.sad.ui", "llvm.nvvm.sad.i"];

/// Two integers whose absolute difference a value is.
struct Difference<'ctx> {
    of: [IntValue<'ctx>; 2],
    signed: bool,
}

/// Computes absolute differences, and sums of one with another integer.
///
/// # Errors
/// If LLVM's builder refuses, which it does not.
pub(super) fn add_at_once<'ctx>(
    context: &'ctx Context,
    module: &Module<'ctx>,
) -> Result<(), BackendError> {
    let builder = context.create_builder();
    for choice in instructions(module, &[InstructionOpcode::Select]) {
        let Some(difference) = difference(choice) else {
            continue;
        };
        let word = context.i32_type();
        let width = difference.of[0].get_type().get_bit_width();
        let (value, none) = match width {
            32 => (choice, word.const_zero()),
            _ => match only_user(choice).filter(|&user| is_widened(user)) {
                Some(widened) if !difference.signed => (widened, word.const_zero()),
                _ => continue,
            },
        };
        let sum = only_user(value).and_then(|user| Some((user, added(user, value)?)));
        let (value, added) = sum.unwrap_or((value, none));
        builder.position_before(&value);
        write(module, &builder, value, &difference, added)?;
    }
    Ok(())
}

/// Puts the sum in the place of an instruction that computes it.
fn write<'ctx>(
    module: &Module<'ctx>,
    builder: &Builder<'ctx>,
    value: InstructionValue<'ctx>,
    difference: &Difference<'ctx>,
    added: IntValue<'ctx>,
) -> Result<(), BackendError> {
    let word = added.get_type();
    let mut args = Vec::with_capacity(3);
    for of in difference.of {
        let wide = builder.build_int_z_extend_or_bit_cast(of, word, "")?;
        args.push(BasicValueEnum::from(wide));
    }
    args.push(added.into());
    let name = SUMS[usize::from(difference.signed)];
    let declaration = declared(module, name, &[])?;
    let call = builder.build_call(declaration, &call_arguments(&args), "")?;
    if let Some(sum) = value_of(call, name)?.as_instruction_value() {
        replace(value, sum);
    }
    Ok(())
}

/// What the larger of two integers is more than the other, if a choice is that.
fn difference(choice: InstructionValue<'_>) -> Option<Difference<'_>> {
    let integer = |i| match choice.get_operand(i)?.value()? {
        BasicValueEnum::IntValue(value) => Some(value),
        _ => None,
    };
    let (condition, chosen, other) = (integer(0)?, integer(1)?, integer(2)?);
    let (one, two) = operands(condition, InstructionOpcode::ICmp)?;
    if ![8, 16, 32].contains(&one.get_type().get_bit_width()) {
        return None;
    }
    use IntPredicate::{SGE, SGT, SLE, SLT, UGE, UGT, ULE, ULT};
    let predicate = condition.as_instruction()?.get_icmp_predicate()?;
    let (lesser, greater) = match predicate {
        ULT | ULE | SLT | SLE => (one, two),
        UGT | UGE | SGT | SGE => (two, one),
        _ => return None,
    };
    let subtracted = |value| operands(value, InstructionOpcode::Sub);
    let is_difference =
        subtracted(chosen)? == (greater, lesser) && subtracted(other)? == (lesser, greater);
    is_difference.then_some(Difference {
        of: [lesser, greater],
        signed: matches!(predicate, SLT | SLE | SGT | SGE),
    })
}

/// Whether an instruction makes 32 bits of fewer, the others of which are zeros.
fn is_widened(instruction: InstructionValue<'_>) -> bool {
    let ty = instruction.get_type();
    instruction.get_opcode() == InstructionOpcode::ZExt
        && ty.is_int_type()
        && ty.into_int_type().get_bit_width() == 32
}

/// What else a sum adds to `value`.
fn added<'ctx>(
    sum: InstructionValue<'ctx>,
    value: InstructionValue<'ctx>,
) -> Option<IntValue<'ctx>> {
    if sum.get_opcode() != InstructionOpcode::Add {
        return None;
    }
    let operand = |i| match sum.get_operand(i)?.value()? {
        BasicValueEnum::IntValue(operand) => Some(operand),
        _ => None,
    };
    let (one, other) = (operand(0)?, operand(1)?);
    let is_value = |operand: IntValue<'ctx>| operand.as_instruction() == Some(value);
    match (is_value(one), is_value(other)) {
        (true, false) => Some(other),
        (false, true) => Some(one),
        _ => None,
    }
}

/// The only instruction that uses a value.
pub(super) fn only_user(value: InstructionValue<'_>) -> Option<InstructionValue<'_>> {
    let first = value.get_first_use()?;
    if first.get_next_use().is_some() {
        return None;
    }
    match first.get_user() {
        AnyValueEnum::IntValue(user) => user.as_instruction(),
        _ => None,
    }
}
