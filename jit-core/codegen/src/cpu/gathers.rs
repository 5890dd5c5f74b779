//! The indices of gathers and scatters, extended where they are used.
//!
//! The instruction extends an index of 32 bits itself, so that it takes twice as many as of 64. LLVM sees that where the
//! extension is in the block of the access, as the code generator looks at one block at a time; its passes compute it once for
//! all accesses by an index, in the block of the first.

use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::values::{
    AnyValue as _, BasicValueEnum, InstructionOpcode, InstructionValue, VectorValue,
};

use crate::llvm::error::BackendError;
use crate::llvm::inspect::{Called, called};

/// Computes the addresses of a module's gathers and scatters, and the indices that these extend, before each, after the passes.
pub(super) fn extend_at_accesses<'ctx>(
    context: &'ctx Context,
    module: &Module<'ctx>,
) -> Result<(), BackendError> {
    let builder = context.create_builder();
    let blocks = module.get_functions().flat_map(|f| f.get_basic_blocks());
    let accesses: Vec<_> = blocks
        .flat_map(|block| block.get_instructions())
        .filter_map(|call| Some((call, addresses_of(call)?)))
        .collect();
    for (call, operand) in accesses {
        extend_at(&builder, call, operand)?;
    }
    Ok(())
}

/// Which operand of a call the addresses are, if it is a gather or a scatter.
fn addresses_of(call: InstructionValue<'_>) -> Option<u32> {
    match called(call)? {
        Called::Function(name) if name.starts_with("llvm.masked.gather") => Some(0),
        Called::Function(name) if name.starts_with("llvm.masked.scatter") => Some(1),
        _ => None,
    }
}

/// The instruction of this kind that gives an operand, a vector.
fn made_by<'ctx>(
    user: InstructionValue<'ctx>,
    operand: u32,
    is_kind: fn(InstructionOpcode) -> bool,
) -> Option<InstructionValue<'ctx>> {
    let value = user.get_operand(operand)?.value()?;
    let BasicValueEnum::VectorValue(lanes) = value else {
        return None;
    };
    lanes
        .as_instruction()
        .filter(|made| is_kind(made.get_opcode()))
}

fn extend_at<'ctx>(
    builder: &Builder<'ctx>,
    call: InstructionValue<'ctx>,
    operand: u32,
) -> Result<(), BackendError> {
    use InstructionOpcode::{GetElementPtr, SExt, ZExt};
    let addresses = made_by(call, operand, |opcode| opcode == GetElementPtr);
    let Some(addresses) = addresses else {
        return Ok(());
    };
    let extended = made_by(addresses, 1, |opcode| matches!(opcode, SExt | ZExt));
    let Some(extended) = extended else {
        return Ok(());
    };
    let here = call.get_parent();
    if addresses.get_parent() == here && extended.get_parent() == here {
        return Ok(());
    }
    builder.position_before(&call);
    let again = |of: InstructionValue<'ctx>| -> Result<_, BackendError> {
        let copy = of.explicit_clone();
        builder.insert_instruction(&copy, None);
        let no_vector = |()| BackendError::new("optimize", "an address of lanes is no vector");
        let lanes = VectorValue::try_from(copy.as_any_value_enum()).map_err(no_vector)?;
        Ok((copy, lanes))
    };
    let (_, index) = again(extended)?;
    let (copy, lanes) = again(addresses)?;
    copy.set_operand(1, index);
    call.set_operand(operand, lanes);
    Ok(())
}
