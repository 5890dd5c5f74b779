//! Absolute values of 16-bit integers, in 32 bits.
//!
//! `abs.s16` of the smallest integer is that integer (LLVM's `llvm.abs`, and the IR), but `ptxas` 13.0,
//! and a driver of that age, take its result for one that is never negative: converted to 64 bits it is
//! 32768 (seen in SASS: `IABS` without the sign extension that 13.5 writes after it). So `llvm.abs` of 16
//! bits, which LLVM makes of `x < 0 ? -x : x` too, is computed in 32 bits, where the smallest integer of
//! 16 bits is one as any other.

use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::intrinsics::Intrinsic;
use inkwell::module::Module;
use inkwell::values::{CallSiteValue, FunctionValue, InstructionOpcode, InstructionValue};

use super::error::BackendError;

/// The intrinsic that is replaced.
const SHORT: &str = "llvm.abs.i16";

/// Replaces all calls of it, after the passes, which make some.
pub(crate) fn widen_short_abs<'ctx>(
    context: &'ctx Context,
    module: &Module<'ctx>,
) -> Result<(), BackendError> {
    if module.get_function(SHORT).is_none() {
        return Ok(());
    }
    let wide = Intrinsic::find("llvm.abs")
        .and_then(|abs| abs.get_declaration(module, &[context.i32_type().into()]))
        .ok_or_else(|| BackendError::new("optimize", "LLVM has no `llvm.abs`"))?;
    let builder = context.create_builder();
    for call in calls(module) {
        widen(context, &builder, call, wide)?;
    }
    Ok(())
}

fn calls<'ctx>(module: &Module<'ctx>) -> Vec<InstructionValue<'ctx>> {
    let blocks = module
        .get_functions()
        .flat_map(|f| f.get_basic_block_iter());
    let calls = blocks.flat_map(|block| block.get_instructions());
    calls.filter(|&call| is_short_abs(call)).collect()
}

fn is_short_abs(instruction: InstructionValue<'_>) -> bool {
    let call = match instruction.get_opcode() {
        InstructionOpcode::Call => CallSiteValue::try_from(instruction).ok(),
        _ => None,
    };
    let callee = call.and_then(|call| call.get_called_fn_value());
    callee.is_some_and(|callee| callee.get_name().to_bytes() == SHORT.as_bytes())
}

fn widen<'ctx>(
    context: &'ctx Context,
    builder: &Builder<'ctx>,
    call: InstructionValue<'ctx>,
    wide: FunctionValue<'ctx>,
) -> Result<(), BackendError> {
    let unexpected = || BackendError::new("optimize", "`llvm.abs.i16` takes no integer");
    let argument = call.get_operand(0).and_then(|operand| operand.value());
    let argument = argument.ok_or_else(unexpected)?.into_int_value();
    builder.position_before(&call);
    let (short, int) = (context.i16_type(), context.i32_type());
    let extended = builder.build_int_s_extend(argument, int, "")?;
    let may_be_smallest = context.bool_type().const_zero();
    let args = [extended.into(), may_be_smallest.into()];
    let absolute = builder.build_call(wide, &args, "")?;
    let absolute = absolute
        .try_as_basic_value()
        .basic()
        .ok_or_else(unexpected)?;
    let result = builder.build_int_truncate(absolute.into_int_value(), short, "")?;
    let result = result.as_instruction().ok_or_else(unexpected)?;
    call.replace_all_uses_with(&result);
    call.erase_from_basic_block();
    Ok(())
}
