//! Square roots of `f32` that run straight on.
//!
//! Of `sqrt.rn.f32` `ptxas` makes five instructions for numbers from 2^-101 on, and a branch around a call for all others. So
//! several roots of a thread wait for each other, and each takes `ptxas` about a millisecond. The same five instructions are
//! written here, with what they are not for taken apart: smaller numbers are multiplied by 2^64 before and by 2^-32 behind, both
//! exactly, and zeros and infinity are their own roots. Negative numbers and NaN have some NaN of `rsqrt`.

use inkwell::attributes::AttributeLoc;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::values::{BasicValue as _, FastMathFlags, InstructionOpcode, InstructionValue};

use kiln_ir::Effects;

use super::inline_ptx::InlinePtx;
use crate::llvm::ask::value_of;
use crate::llvm::error::BackendError;
use crate::llvm::inspect::{Called, called};

/// The root of a number, rounded to nearest-even, with 2^-96, 2^64 and 2^-32 (`ptxas` of CUDA 13 for sm_75 to sm_120: `MUFU.RSQ`,
/// two `FMUL.FTZ`, two `FFMA`).
const ROOT: InlinePtx<'_> = InlinePtx {
    template: "{ .reg .f32 x, r, g, h, e; .reg .pred s, z; \
        setp.lt.f32 s, $1, 0f0F800000; mov.f32 x, $1; @s mul.f32 x, $1, 0f5F800000; \
        rsqrt.approx.ftz.f32 r, x; mul.ftz.f32 g, x, r; mul.ftz.f32 h, r, 0f3F000000; \
        neg.f32 e, g; fma.rn.f32 e, e, g, x; fma.rn.f32 g, e, h, g; @s mul.f32 g, g, 0f2F800000; \
        setp.eq.f32 z, x, 0f00000000; setp.eq.or.f32 z, x, 0f7F800000, z; selp.f32 $0, $1, g, z; }",
    constraints: "=f,f",
    effects: Effects::None,
};

/// Writes the roots of a module that are rounded, and of which numbers below the normal ones are as others.
///
/// # Errors
/// If LLVM's builder refuses, which it does not.
pub(super) fn write_straight<'ctx>(
    context: &'ctx Context,
    module: &Module<'ctx>,
) -> Result<(), BackendError> {
    let functions = module.get_functions().filter(|function| {
        let flushes = "denormal-fp-math-f32";
        let attribute = function.get_string_attribute(AttributeLoc::Function, flushes);
        attribute.is_none()
    });
    let blocks = functions.flat_map(|function| function.get_basic_block_iter());
    let all = blocks.flat_map(|block| block.get_instructions());
    let roots: Vec<_> = all.filter(|call| is_rounded_root(*call)).collect();
    let (builder, ty) = (context.create_builder(), context.f32_type());
    for root in roots {
        let Some(number) = root.get_operand(0).and_then(|operand| operand.value()) else {
            continue;
        };
        builder.position_before(&root);
        let call = ROOT.call(context, &builder, Some(ty.into()), &[number])?;
        let written = value_of(call, "a root")?;
        if let Some(written) = written.as_instruction_value() {
            root.replace_all_uses_with(&written);
            root.erase_from_basic_block();
        }
    }
    Ok(())
}

/// Whether an instruction is the root of an `f32`, and not an approximation.
fn is_rounded_root(call: InstructionValue<'_>) -> bool {
    let is_root = call.get_opcode() == InstructionOpcode::Call
        && matches!(called(call), Some(Called::Function(name)) if name == "llvm.sqrt.f32");
    let flags = call.get_fast_math_flags().unwrap_or(FastMathFlags::empty());
    is_root && !flags.contains(FastMathFlags::ApproxFunc)
}
