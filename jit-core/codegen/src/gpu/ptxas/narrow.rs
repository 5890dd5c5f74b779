//! Parts of floats are cut off before they are stored.
//!
//! `st.b16 [a], %r` stores the low half of a 32-bit register (PTX ISA, "Operand Size Exceeding
//! Instruction-Type Size"). If what made the register is an operation of floats, `ptxas` 13.0 converts
//! the float to an integer and stores that: `F2I.U16` in its SASS, `F2IP.U8` for a byte, the same for
//! parts of `f64` and the low byte of `f16`; 13.5 stores the bits. LLVM makes such a store of a
//! truncated value. One that comes from a float's bits is cut by an instruction of its own, which
//! costs nothing in SASS.

use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::types::IntType;
use inkwell::values::{
    BasicValue as _, BasicValueEnum, InstructionOpcode, InstructionValue, IntValue,
};

use kiln_ir::Effects;

use super::{instructions, is_choice, sources};
use crate::gpu::inline_ptx::InlinePtx;
use crate::llvm::error::BackendError;

/// The low half of a 64-bit register.
pub(crate) const WORD_OF_64: &str = "cvt.u32.u64 $0, $1;";
/// The low quarter of a 64-bit register.
pub(crate) const SHORT_OF_64: &str = "cvt.u16.u64 $0, $1;";
/// The low half of a 32-bit register.
pub(crate) const SHORT_OF_32: &str = "cvt.u16.u32 $0, $1;";
/// The low half of a 16-bit register.
pub(crate) const BYTE_OF_16: &str = "and.b16 $0, $1, 255;";

/// Cuts what is stored.
pub(super) fn cut_before_storing<'ctx>(
    context: &'ctx Context,
    module: &Module<'ctx>,
) -> Result<(), BackendError> {
    let builder = context.create_builder();
    for store in instructions(module, &[InstructionOpcode::Store]) {
        if let Some((whole, part)) = part_of_float(store) {
            builder.position_before(&store);
            let part = cut(context, &builder, whole, part)?;
            let stored = store.set_operand(0, part);
            debug_assert!(stored, "a store has a value");
        }
    }
    Ok(())
}

/// What is truncated to be stored, and to what, if it may be the bits of a float.
fn part_of_float<'ctx>(store: InstructionValue<'ctx>) -> Option<(IntValue<'ctx>, IntType<'ctx>)> {
    let BasicValueEnum::IntValue(stored) = store.get_operand(0)?.value()? else {
        return None;
    };
    let truncation = stored.as_instruction()?;
    if truncation.get_opcode() != InstructionOpcode::Trunc {
        return None;
    }
    let BasicValueEnum::IntValue(whole) = truncation.get_operand(0)?.value()? else {
        return None;
    };
    holds_float(whole).then(|| (whole, stored.get_type()))
}

/// Whether the register of an integer may be one that an operation of floats wrote.
fn holds_float(value: IntValue<'_>) -> bool {
    let of_float = |source: &BasicValueEnum<'_>| {
        let made = source.as_instruction_value();
        let bits = made.filter(|made| made.get_opcode() == InstructionOpcode::BitCast);
        let from = bits.and_then(|bits| bits.get_operand(0)?.value());
        from.is_some_and(|from| from.is_float_value())
    };
    sources(value.into(), &is_choice).is_none_or(|sources| sources.iter().any(of_float))
}

/// The low bits of a register, in one of its own.
fn cut<'ctx>(
    context: &'ctx Context,
    builder: &Builder<'ctx>,
    whole: IntValue<'ctx>,
    part: IntType<'ctx>,
) -> Result<IntValue<'ctx>, BackendError> {
    let widths = (whole.get_type().get_bit_width(), part.get_bit_width());
    let (template, constraints, register) = match widths {
        (64, 32) => (WORD_OF_64, "=r,l", context.i32_type()),
        (64, _) => (SHORT_OF_64, "=h,l", context.i16_type()),
        (32, _) => (SHORT_OF_32, "=h,r", context.i16_type()),
        _ => (BYTE_OF_16, "=h,h", context.i16_type()),
    };
    let ptx = InlinePtx {
        template,
        constraints,
        effects: Effects::None,
    };
    let call = ptx.call(context, builder, Some(register.into()), &[whole.into()])?;
    let cut = call.try_as_basic_value().basic();
    let cut = cut.ok_or_else(|| BackendError::new("optimize", "a cut gives no value"))?;
    // Nothing if it is a byte's 16 bits already.
    Ok(builder.build_int_truncate_or_bit_cast(cut.into_int_value(), part, "")?)
}
