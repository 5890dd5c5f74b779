//! Signs of floats whose bits are looked at.
//!
//! LLVM's passes take the bits of a float without its sign for those of its absolute value, those with the other sign for
//! those of its negation, and a store of such bits for one of the float. `abs` and `neg` of PTX give some NaN of a NaN (PTX ISA,
//! "abs", "neg"), so that the bits would not be those that a kernel asks for. Whatever has such a float and does
//! no arithmetic with it gets the bits from an operation of integers instead, which is one instruction, too. To arithmetic the sign
//! is a part of its own instruction and one NaN as good as another. Of an integer operation between two casts the code generator
//! would make `abs` and `neg` again, so that such a float is hidden from it.

use std::num::NonZeroU32;

use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::types::{BasicTypeEnum, FloatType, IntType, VectorType};
use inkwell::values::{
    AnyValueEnum, BasicValue as _, BasicValueEnum, InstructionOpcode, InstructionValue,
    IntMathValue, IntValue,
};

use kiln_ir::Effects;

use super::{LOOKED_AT, instructions, is_choice};
use crate::gpu::inline_ptx::InlinePtx;
use crate::gpu::nvptx::{HIDDEN_ADDRESS, HIDDEN_WORD};
use crate::llvm::ask::value_of;
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
        let Some(bits) = by_integers(&builder, sign, number)? else {
            continue;
        };
        let (of_bits, of_floats): (Vec<_>, Vec<_>) = tell.into_iter().partition(takes_bits);
        put_in_place(&of_bits, changed, bits);
        if !of_floats.is_empty() {
            let float = hidden(context, &builder, bits, number.get_type())?;
            put_in_place(&of_floats, changed, float);
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
        value => BasicValueEnum::try_from(value).ok()?.as_instruction_value(),
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
                let operation = name
                    .strip_prefix("llvm.")
                    .and_then(|name| name.split('.').next());
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

/// The bits of floats with the signs changed; `None` of what is none.
fn by_integers<'ctx>(
    builder: &Builder<'ctx>,
    sign: Sign,
    number: BasicValueEnum<'ctx>,
) -> Result<Option<BasicValueEnum<'ctx>>, BackendError> {
    let cast = |value: BasicValueEnum<'ctx>, ty: BasicTypeEnum<'ctx>| {
        builder.build_bit_cast(value, ty, "")
    };
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
    Ok(Some(changed))
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

/// The floats with these bits, of which the code generator does not see that it could change a sign.
fn hidden<'ctx>(
    context: &'ctx Context,
    builder: &Builder<'ctx>,
    bits: BasicValueEnum<'ctx>,
    ty: BasicTypeEnum<'ctx>,
) -> Result<BasicValueEnum<'ctx>, BackendError> {
    let hidden: BasicValueEnum<'ctx> = match bits {
        BasicValueEnum::VectorValue(bits) => {
            let mut hidden = bits;
            for lane in 0..u64::from(bits.get_type().get_size()) {
                let at = context.i32_type().const_int(lane, false);
                let one = builder
                    .build_extract_element(bits, at, "")?
                    .into_int_value();
                let one = hidden_integer(context, builder, one)?;
                hidden = builder.build_insert_element(hidden, one, at, "")?;
            }
            hidden.into()
        }
        bits => hidden_integer(context, builder, bits.into_int_value())?.into(),
    };
    Ok(builder.build_bit_cast(hidden, ty, "")?)
}

/// An integer by an instruction of its own, which `ptxas` leaves out.
fn hidden_integer<'ctx>(
    context: &'ctx Context,
    builder: &Builder<'ctx>,
    integer: IntValue<'ctx>,
) -> Result<IntValue<'ctx>, BackendError> {
    let own = integer.get_type();
    let ((template, constraints), register) = match own.get_bit_width() {
        64 => (HIDDEN_ADDRESS, context.i64_type()),
        _ => (HIDDEN_WORD, context.i32_type()),
    };
    let ptx = InlinePtx {
        template,
        constraints,
        effects: Effects::None,
    };
    let integer = builder.build_int_z_extend_or_bit_cast(integer, register, "")?;
    let call = ptx.call(context, builder, Some(register.into()), &[integer.into()])?;
    let copy = value_of(call, "a copy")?;
    Ok(builder.build_int_truncate_or_bit_cast(copy.into_int_value(), own, "")?)
}

/// Whether a user of a float can as well have its bits: a store, and a cast.
fn takes_bits(user: &InstructionValue<'_>) -> bool {
    matches!(
        user.get_opcode(),
        InstructionOpcode::Store | InstructionOpcode::BitCast
    )
}

/// Gives users another value in place of an operand.
fn put_in_place<'ctx>(
    users: &[InstructionValue<'ctx>],
    old: InstructionValue<'ctx>,
    new: BasicValueEnum<'ctx>,
) {
    for user in users {
        for (n, operand) in (0..).zip(user.get_operands()) {
            let value = operand.and_then(|operand| operand.value()?.as_instruction_value());
            if value == Some(old) {
                let set = user.set_operand(n, new);
                debug_assert!(set, "it has the operand");
            }
        }
    }
}
