//! What `ptxas` makes wrong of right PTX, and what LLVM's code generator makes slow, written in another way.
//!
//! What goes wrong was found by random kernels on a GPU, and understood from SASS (`docs/upstream` has a case of each). It
//! is done after LLVM's passes, some of which would make the first form of it again, half in LLVM's
//! IR and half in the text, after its code generator.
//!
//! | file | what goes wrong, or is slow |
//! |---|---|
//! | `short` | `abs.s16` and `neg.s16` of the smallest integer; minima and maxima of 16-bit integers that are compared |
//! | `boolean` | conversions between integers and floats of what is 0 or 1 |
//! | `narrow` | stores of a part of a register that holds a float |
//! | `signs` | bits of floats without their sign or with the other one, which LLVM's passes take for `abs` and `neg` |
//! | `pairs` | pairs of 16-bit integers with a constant |
//! | `slow` | counts of the zeros below the lowest one and above the highest |
//! | `differences` | absolute differences, and sums of them |
//! | `chosen` | sums with what is chosen to be 0 |
//! | `strides`, `running` | addresses of unrolled loops, each by a stride of its own, from a base and an offset |
//! | `wide` | addresses whose index was made wide in an earlier block |
//! | `gathers` | loops whose loads give the addresses of others, with too few registers for several at once |
//! | `unused` | votes, matches and reductions of a warp, loads that acquire, read-modify-writes whose result nobody uses |
//!
//! `text` has the registers of a line, `code` a function's instructions and blocks, `loops` its innermost loops,
//! `pressure` how many registers it needs.

mod boolean;
mod chosen;
mod code;
mod differences;
mod gathers;
mod loops;
mod narrow;
mod pairs;
mod pressure;
mod running;
mod short;
mod signs;
mod slow;
mod strides;
mod text;
mod unused;
mod wide;

use std::borrow::Cow;

use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::values::{
    BasicValue as _, BasicValueEnum, InstructionOpcode, InstructionValue, PhiValue,
};

use super::nvptx::{HIDDEN_ADDRESS, HIDDEN_WORD};
use crate::llvm::error::BackendError;
use code::Code;

#[cfg(feature = "gpu-on-host")]
pub(crate) use differences::SUMS;
pub(crate) use narrow::{BYTE_OF_16, SHORT_OF_32, SHORT_OF_64, WORD_OF_64};

/// Rewrites a module, after the passes, so that `ptxas` makes of it what it says.
pub(crate) fn write_around<'ctx>(
    context: &'ctx Context,
    module: &Module<'ctx>,
) -> Result<(), BackendError> {
    signs::change_bits(context, module)?;
    boolean::convert_by_selecting(context, module)?;
    slow::write_short(context, module)?;
    differences::add_at_once(context, module)?;
    chosen::choose_late(context, module)?;
    narrow::cut_before_storing(context, module)
}

/// Whether inline PTX of this form is written here.
pub(crate) fn writes(template: &str) -> bool {
    let hidden = [HIDDEN_ADDRESS, HIDDEN_WORD].map(|(template, _)| template);
    [BYTE_OF_16, SHORT_OF_32, SHORT_OF_64, WORD_OF_64].contains(&template)
        || hidden.contains(&template)
}

/// Rewrites the text that LLVM wrote, where only its code generator makes what goes wrong, and gives kernels whose loops gather
/// more registers, if they may have them.
pub(crate) fn write_around_in_text(ptx: &str, gather_registers: bool) -> String {
    // Pairs in parts are operations on 16 bits.
    let right = short::widen(&pairs::split(&unused::drop_unused(ptx))).into_owned();
    let right = match loops::may_loop(&right) {
        true => write_loops(&right, gather_registers),
        false => right,
    };
    wide::multiply(&right).into_owned()
}

/// Rewrites loops.
fn write_loops(ptx: &str, gather_registers: bool) -> String {
    let read = Code::all(ptx);
    let chained = strides::chain(ptx, &read);
    if !gather_registers {
        return chained.into_owned();
    }
    match &chained {
        Cow::Borrowed(same) => gathers::give_registers(same, &read),
        Cow::Owned(changed) => gathers::give_registers(changed, &Code::all(changed)),
    }
    .into_owned()
}

/// All instructions of a module that are one of these.
fn instructions<'ctx>(
    module: &Module<'ctx>,
    wanted: &[InstructionOpcode],
) -> Vec<InstructionValue<'ctx>> {
    let blocks = module
        .get_functions()
        .flat_map(|f| f.get_basic_block_iter());
    let all = blocks.flat_map(|block| block.get_instructions());
    all.filter(|instruction| wanted.contains(&instruction.get_opcode()))
        .collect()
}

/// A replaced instruction's uses become the replacement's, and it goes.
fn replace(old: InstructionValue<'_>, new: InstructionValue<'_>) {
    old.replace_all_uses_with(&new);
    old.erase_from_basic_block();
}

/// How many instructions are looked at to know where a value comes from.
const LOOKED_AT: usize = 256;

/// Where a value comes from, seen through choices and through operations that `passed` names; `None`
/// if that is too much to look at.
fn sources<'ctx>(
    value: BasicValueEnum<'ctx>,
    passed: &dyn Fn(InstructionValue<'ctx>) -> bool,
) -> Option<Vec<BasicValueEnum<'ctx>>> {
    let mut sources = Vec::new();
    let mut seen: Vec<InstructionValue<'ctx>> = Vec::new();
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        match value.as_instruction_value() {
            Some(instruction) if seen.contains(&instruction) => {}
            Some(instruction) if passed(instruction) => {
                seen.push(instruction);
                left.extend(chosen_from(instruction));
            }
            _ => sources.push(value),
        }
        if seen.len() > LOOKED_AT {
            return None;
        }
    }
    Some(sources)
}

/// Whether an instruction gives one of its operands as it is.
fn is_choice(instruction: InstructionValue<'_>) -> bool {
    matches!(
        instruction.get_opcode(),
        InstructionOpcode::Phi | InstructionOpcode::Select | InstructionOpcode::Freeze
    )
}

/// The operands that an instruction's value is made of.
fn chosen_from<'ctx>(instruction: InstructionValue<'ctx>) -> Vec<BasicValueEnum<'ctx>> {
    if let Ok(phi) = PhiValue::try_from(instruction) {
        return phi.get_incomings().map(|(value, _)| value).collect();
    }
    let condition = usize::from(instruction.get_opcode() == InstructionOpcode::Select);
    let operands = instruction.get_operands().skip(condition);
    operands.filter_map(|operand| operand?.value()).collect()
}
