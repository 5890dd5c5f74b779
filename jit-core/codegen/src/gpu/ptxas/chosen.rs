//! Operations on what is chosen to be nothing, which are chosen afterwards instead.
//!
//! LLVM's passes make `sum + (c ? x : 0)` of `if c { sum += x }`: a choice and a sum, and so does `ptxas` (SASS: `SEL`,
//! `IADD3`). Of `c ? sum + x : sum` it makes one instruction under a predicate (`@P0 IADD3`), as LLVM's passes leave it of
//! floats, where a sum with 0 is another operation.

use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::values::{
    BasicValue as _, BasicValueEnum, InstructionOpcode, InstructionValue, IntValue,
};

use super::differences::only_user;
use super::{instructions, replace};
use crate::llvm::error::BackendError;

/// An operation with a choice between something and nothing.
struct Operation<'ctx> {
    condition: IntValue<'ctx>,
    /// Whether nothing is chosen where the condition is true.
    is_left_out: bool,
    value: IntValue<'ctx>,
    user: InstructionValue<'ctx>,
    other: IntValue<'ctx>,
}

/// Chooses between an operation's result and its operand, where it has a choice between something and nothing.
///
/// # Errors
/// If LLVM's builder refuses, which it does not.
pub(super) fn choose_late<'ctx>(
    context: &'ctx Context,
    module: &Module<'ctx>,
) -> Result<(), BackendError> {
    let builder = context.create_builder();
    for choice in instructions(module, &[InstructionOpcode::Select]) {
        if let Some(operation) = operation(choice) {
            write(&builder, choice, &operation)?;
        }
    }
    Ok(())
}

/// The operation, if there is one, and nobody else asks for what is chosen.
fn operation(choice: InstructionValue<'_>) -> Option<Operation<'_>> {
    let (condition, chosen, other) = (
        integer(choice, 0)?,
        integer(choice, 1)?,
        integer(choice, 2)?,
    );
    let (is_left_out, value) = match (is_nothing(chosen), is_nothing(other)) {
        (false, true) => (false, chosen),
        (true, false) => (true, other),
        _ => return None,
    };
    if value.get_type().get_bit_width() < 32 {
        return None;
    }
    let user = only_user(choice)?;
    let (first, second) = (integer(user, 0)?, integer(user, 1)?);
    let is_choice = |operand: IntValue<'_>| operand.as_instruction() == Some(choice);
    let other = match user.get_opcode() {
        InstructionOpcode::Add | InstructionOpcode::Or | InstructionOpcode::Xor => {
            if is_choice(first) { second } else { first }
        }
        InstructionOpcode::Sub if is_choice(second) => first,
        _ => return None,
    };
    // Of a constant there is nothing that is kept in its place.
    (!other.is_const()).then_some(Operation {
        condition,
        is_left_out,
        value,
        user,
        other,
    })
}

fn integer<'ctx>(of: InstructionValue<'ctx>, operand: u32) -> Option<IntValue<'ctx>> {
    match of.get_operand(operand)?.value()? {
        BasicValueEnum::IntValue(value) => Some(value),
        _ => None,
    }
}

fn is_nothing(value: IntValue<'_>) -> bool {
    value.is_const() && value == value.get_type().const_zero()
}

fn write<'ctx>(
    builder: &Builder<'ctx>,
    choice: InstructionValue<'ctx>,
    operation: &Operation<'ctx>,
) -> Result<(), BackendError> {
    let Operation { user, other, .. } = *operation;
    builder.position_before(&user);
    let value = operation.value;
    let result = match user.get_opcode() {
        InstructionOpcode::Or => builder.build_or(other, value, "")?,
        InstructionOpcode::Xor => builder.build_xor(other, value, "")?,
        InstructionOpcode::Sub => builder.build_int_sub(other, value, "")?,
        _ => builder.build_int_add(other, value, "")?,
    };
    let (taken, left) = match operation.is_left_out {
        true => (other, result),
        false => (result, other),
    };
    let chosen = builder.build_select(operation.condition, taken, left, "")?;
    if let Some(chosen) = chosen.as_instruction_value() {
        replace(user, chosen);
        choice.erase_from_basic_block();
    }
    Ok(())
}
