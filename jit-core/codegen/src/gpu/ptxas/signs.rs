//! Signs of floats whose bits are looked at.
//!
//! LLVM's passes take the bits of a float without its sign for those of its absolute value, those with the other sign for
//! those of its negation, and a store of such bits for one of the float. `abs` and `neg` of PTX give some NaN of a NaN (PTX ISA,
//! "abs", "neg"), so that the bits would not be those that a kernel asks for. Whatever has such a float and does
//! no arithmetic with it gets the bits from an operation of integers instead, which is one instruction, too. To arithmetic the sign is
//! a part of its own instruction and one NaN as good as another.

use std::num::NonZeroU32;

use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::types::{BasicTypeEnum, FloatType, IntType, VectorType};
use inkwell::values::{
    AnyValueEnum, BasicValue as _, BasicValueEnum, InstructionOpcode, InstructionValue,
    IntMathValue, IntValue,
};

use super::{LOOKED_AT, instructions, is_choice};
use crate::llvm::error::BackendError;
use crate::llvm::inspect::{Called, called};

/// What becomes of a float's sign.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Sign {
    Cleared,
    Turned,
}

/// Changes bits where more than arithmetic has a float whose sign is cleared or turned.
pub(super) fn change_bits<'ctx>(
    context: &'ctx Context,
    module: &Module<'ctx>,
) -> Result<(), BackendError> {
    let builder = context.create_builder();
    for changed in instructions(module, &[InstructionOpcode::Call, InstructionOpcode::FNeg]) {
        let Some((sign, number)) = change(changed) else {
            continue;
        };
        let tell: Vec<_> = users(changed).filter(|user| has_bits(*user)).collect();
        if tell.is_empty() {
            continue;
        }
        builder.position_before(&changed);
        let Some(float) = by_integers(&builder, sign, number)? else {
            continue;
        };
        for user in tell {
            put_in_place(user, changed, float);
        }
        if changed.get_first_use().is_none() {
            changed.erase_from_basic_block();
        }
    }
    Ok(())
}

/// What an instruction does with a float's sign, and the float, if that is all it does.
fn change(instruction: InstructionValue<'_>) -> Option<(Sign, BasicValueEnum<'_>)> {
    let sign = match instruction.get_opcode() {
        InstructionOpcode::FNeg => Sign::Turned,
        _ => match called(instruction)? {
            Called::Function(name) if name.starts_with("llvm.fabs.") => Sign::Cleared,
            _ => return None,
        },
    };
    Some((sign, instruction.get_operand(0)?.value()?))
}

/// The instructions that use a value.
fn users(value: InstructionValue<'_>) -> impl Iterator<Item = InstructionValue<'_>> {
    let uses = std::iter::successors(value.get_first_use(), |one| one.get_next_use());
    uses.filter_map(|one| instruction(one.get_user()))
}

fn instruction(value: AnyValueEnum<'_>) -> Option<InstructionValue<'_>> {
    match value {
        AnyValueEnum::InstructionValue(value) => Some(value),
        AnyValueEnum::PhiValue(value) => Some(value.as_instruction()),
        value => BasicValueEnum::try_from(value)
            .ok()?
            .as_instruction_value(),
    }
}

/// Whether a user of a float, or one of what it gives on as it is, does more with it than arithmetic.
fn has_bits(user: InstructionValue<'_>) -> bool {
    let mut seen = vec![user];
    let mut next = 0;
    while let Some(&user) = seen.get(next) {
        next += 1;
        let gives_on = is_choice(user) || change(user).is_some();
        if !gives_on && !is_arithmetic(user) || next > LOOKED_AT {
            return true;
        }
        if gives_on {
            let more: Vec<_> = users(user).filter(|user| !seen.contains(user)).collect();
            seen.extend(more);
        }
    }
    false
}

/// Whether an instruction has the same result of every NaN, or some NaN.
fn is_arithmetic(user: InstructionValue<'_>) -> bool {
    match user.get_opcode() {
        InstructionOpcode::FAdd
        | InstructionOpcode::FSub
        | InstructionOpcode::FMul
        | InstructionOpcode::FDiv
        | InstructionOpcode::FRem
        | InstructionOpcode::FCmp
        | InstructionOpcode::FPTrunc
        | InstructionOpcode::FPExt
        | InstructionOpcode::FPToSI
        | InstructionOpcode::FPToUI => true,
        InstructionOpcode::Call => match called(user) {
            Some(Called::Function(name)) => {
                let operation = name.strip_prefix("llvm.").and_then(|name| name.split('.').next());
                operation.is_some_and(|operation| ARITHMETIC.contains(&operation))
            }
            _ => false,
        },
        _ => false,
    }
}

/// The intrinsics that are arithmetic, as far as kernels have many of them.
const ARITHMETIC: [&str; 18] = [
    "ceil",
    "exp2",
    "floor",
    "fma",
    "fmuladd",
    "fptosi",
    "fptoui",
    "log2",
    "maximum",
    "maximumnum",
    "maxnum",
    "minimum",
    "minimumnum",
    "minnum",
    "rint",
    "roundeven",
    "sqrt",
    "trunc",
];

/// Floats whose bits are those of others with the signs changed; `None` of what is none.
fn by_integers<'ctx>(
    builder: &Builder<'ctx>,
    sign: Sign,
    number: BasicValueEnum<'ctx>,
) -> Result<Option<BasicValueEnum<'ctx>>, BackendError> {
    let cast = |value: BasicValueEnum<'ctx>, ty: BasicTypeEnum<'ctx>| builder.build_bit_cast(value, ty, "");
    let ty = number.get_type();
    let changed = match ty {
        BasicTypeEnum::FloatType(float) => {
            let bits = cast(number, integer(float)?.into())?.into_int_value();
            change_by(builder, sign, bits, mask(sign, bits.get_type()))?
        }
        BasicTypeEnum::VectorType(floats) => {
            let BasicTypeEnum::FloatType(float) = floats.get_element_type() else {
                return Ok(None);
            };
            let (one, lanes) = (integer(float)?, floats.get_size());
            let bits = cast(number, one.vec_type(lanes).into())?.into_vector_value();
            let masks = vec![mask(sign, one); lanes as usize];
            change_by(builder, sign, bits, VectorType::const_vector(&masks))?
        }
        _ => return Ok(None),
    };
    Ok(Some(cast(changed, ty)?))
}

fn change_by<'ctx, V: IntMathValue<'ctx>>(
    builder: &Builder<'ctx>,
    sign: Sign,
    bits: V,
    mask: V,
) -> Result<BasicValueEnum<'ctx>, BackendError> {
    let changed = match sign {
        Sign::Cleared => builder.build_and(bits, mask, "")?,
        Sign::Turned => builder.build_xor(bits, mask, "")?,
    };
    Ok(changed.as_basic_value_enum())
}

/// The integer as wide as a float.
fn integer(float: FloatType<'_>) -> Result<IntType<'_>, BackendError> {
    let width = NonZeroU32::new(float.get_bit_width());
    let ty = width.and_then(|width| float.get_context().custom_width_int_type(width).ok());
    ty.ok_or_else(|| BackendError::new("optimize", "LLVM has no integer as wide as a float"))
}

/// All bits but the sign's, or the sign's alone.
fn mask(sign: Sign, ty: IntType<'_>) -> IntValue<'_> {
    let of_sign = 1u64 << (ty.get_bit_width() - 1);
    match sign {
        Sign::Cleared => ty.const_int(of_sign - 1, false),
        Sign::Turned => ty.const_int(of_sign, false),
    }
}

/// Puts one operand in the place of another.
fn put_in_place<'ctx>(
    user: InstructionValue<'ctx>,
    old: InstructionValue<'ctx>,
    new: BasicValueEnum<'ctx>,
) {
    for (n, operand) in (0..).zip(user.get_operands()) {
        let value = operand.and_then(|operand| operand.value()?.as_instruction_value());
        if value == Some(old) {
            let set = user.set_operand(n, new);
            debug_assert!(set, "it has the operand");
        }
    }
}
