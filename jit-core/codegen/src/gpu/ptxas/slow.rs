//! Operations of which LLVM's code generator makes long code, though it makes short code of others that give the same.
//!
//! The zeros below the lowest one it counts behind a branch, as it does not know that the instructions it writes are
//! right for 0. They are the zeros above the highest one of the bits in the other order: two instructions.

use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::values::{
    BasicValue as _, BasicValueEnum, CallSiteValue, InstructionOpcode, InstructionValue, IntValue,
};

use super::{instructions, replace};
use crate::llvm::ask::{call_arguments, declared, value_of};
use crate::llvm::error::BackendError;

/// Counts zeros below the lowest one without a branch.
///
/// # Errors
/// If LLVM's builder refuses, which it does not.
pub(super) fn write_short<'ctx>(
    context: &'ctx Context,
    module: &Module<'ctx>,
) -> Result<(), BackendError> {
    let builder = context.create_builder();
    for call in instructions(module, &[InstructionOpcode::Call]) {
        if let Some(number) = counted_below(call) {
            builder.position_before(&call);
            count_above(module, &builder, call, number)?;
        }
    }
    Ok(())
}

/// The number whose zeros below the lowest one a call counts, if it counts those of 0, too.
fn counted_below(call: InstructionValue<'_>) -> Option<IntValue<'_>> {
    let site = CallSiteValue::try_from(call).ok()?;
    let callee = site.get_called_fn_value()?;
    let name = callee.get_name().to_bytes();
    let is_count = name == b"llvm.cttz.i32" || name == b"llvm.cttz.i64";
    match call.get_operand(0)?.value()? {
        BasicValueEnum::IntValue(number) if is_count => Some(number),
        _ => None,
    }
}

fn count_above<'ctx>(
    module: &Module<'ctx>,
    builder: &Builder<'ctx>,
    call: InstructionValue<'ctx>,
    number: IntValue<'ctx>,
) -> Result<(), BackendError> {
    let overloads = [number.get_type().into()];
    let of = |name: &str, args: &[BasicValueEnum<'ctx>]| {
        let declaration = declared(module, name, &overloads)?;
        value_of(
            builder.build_call(declaration, &call_arguments(args), "")?,
            name,
        )
    };
    let reversed = of("llvm.bitreverse", &[number.into()])?;
    let no = module.get_context().bool_type().const_zero();
    let count = of("llvm.ctlz", &[reversed, no.into()])?;
    if let Some(count) = count.as_instruction_value() {
        replace(call, count);
    }
    Ok(())
}
