//! What functions of other compilers ask NVVM by `__nvvm_reflect`, answered.
//!
//! Bitcode that is for any of NVIDIA's GPUs, as libdevice is, asks by name for which one it is compiled, whether small numbers
//! are zero and whether square roots are rounded (NVVM IR specification, "Reflection"). LLVM's pass `nvvm-reflect` ends the process where a name is no constant, and
//! runs behind the look at what a module calls; so the answers are put in where a file is linked.

use inkwell::attributes::AttributeLoc;
use inkwell::module::Module;
use inkwell::values::{BasicValueEnum, CallSiteValue, InstructionOpcode, InstructionValue};

use super::ask::value_of;
use super::inspect::{Called, called, text_at};

/// The function that is asked.
const ASKED: &str = "__nvvm_reflect";

/// How a function says that numbers of `f32` that are not normal are zero.
const DENORMAL_F32: &str = "denormal-fp-math-f32";

/// How a function says it of all numbers that it does not say it of by name.
const DENORMAL: &str = "denormal-fp-math";

/// How a kernel says that its floats may be approximated; LLVM knows no such attribute.
pub(crate) const APPROXIMATES: &str = "kiln-approximates";

/// What a kernel has chosen of its floats, as the functions of a module say it before another one is linked.
pub(super) struct Chosen {
    /// What is flushed; none if they do not say it.
    flushing: Option<String>,
    /// Whether operations may be approximated.
    approximates: bool,
}

impl Chosen {
    pub(super) fn of(module: &Module<'_>) -> Chosen {
        let said = |key| {
            let mut functions = module.get_functions();
            functions
                .find_map(|function| function.get_string_attribute(AttributeLoc::Function, key))
        };
        let flushing = said(DENORMAL_F32);
        Chosen {
            flushing: flushing.map(|how| how.get_string_value().to_string_lossy().into_owned()),
            approximates: said(APPROXIMATES).is_some(),
        }
    }
}

/// Answers all questions of a module for `sm_<sm>`. The functions `linked` flush as the others do, whatever they were compiled for:
/// what is answered is true of all, and none stays a call because it flushes otherwise.
///
/// # Errors
/// If a question is no constant text, or is asked of a function of another type.
pub(super) fn answer(
    module: &Module<'_>,
    sm: u32,
    chosen: &Chosen,
    linked: &[String],
) -> Result<(), String> {
    let context = module.get_context();
    let flushing = chosen.flushing.as_deref();
    let flush = flushing.map(|how| context.create_string_attribute(DENORMAL_F32, how));
    for function in linked.iter().filter_map(|name| module.get_function(name)) {
        for key in [DENORMAL, DENORMAL_F32] {
            function.remove_string_attribute(AttributeLoc::Function, key);
        }
        if let Some(flush) = flush {
            function.add_attribute(AttributeLoc::Function, flush);
        }
    }
    let Some(asked) = module.get_function(ASKED) else {
        return Ok(());
    };
    if asked.count_basic_blocks() > 0 {
        return Ok(());
    }
    let flushes = flushing.is_some_and(|how| how.starts_with("preserve-sign"));
    for call in questions(module) {
        let Some(question) = question(call) else {
            return Err(format!(
                "asks `{ASKED}` by something else than a constant text, which nobody can answer"
            ));
        };
        let answer = match question.as_str() {
            "__CUDA_ARCH" => u64::from(sm) * 10,
            "__CUDA_FTZ" => flushes.into(),
            // Roots and quotients are rounded where the kernel's own are, as nvcc has it without and with `-use_fast_math`.
            "__CUDA_PREC_SQRT" | "__CUDA_PREC_DIV" => (!chosen.approximates).into(),
            // LLVM's pass says so of what it does not know.
            _ => 0,
        };
        let site = CallSiteValue::try_from(call);
        let value = site.ok().and_then(|site| value_of(site, ASKED).ok());
        let Some(BasicValueEnum::IntValue(value)) = value else {
            return Err(format!("has `{ASKED}` as something else than `i32 (ptr)`"));
        };
        value.replace_all_uses_with(value.get_type().const_int(answer, false));
        call.erase_from_basic_block();
    }
    Ok(())
}

/// The calls of the function that is asked.
fn questions<'ctx>(module: &Module<'ctx>) -> Vec<InstructionValue<'ctx>> {
    let blocks = module
        .get_functions()
        .flat_map(|function| function.get_basic_block_iter());
    let all = blocks.flat_map(|block| block.get_instructions());
    all.filter(|inst| inst.get_opcode() == InstructionOpcode::Call)
        .filter(|inst| matches!(called(*inst), Some(Called::Function(name)) if name == ASKED))
        .collect()
}

/// The text that a call asks by.
fn question(call: InstructionValue<'_>) -> Option<String> {
    let operand = call.get_operand(0)?.value()?;
    let text = text_at(operand)?;
    let text = text.split(|&byte| byte == 0).next().unwrap_or_default();
    Some(String::from_utf8_lossy(text).into_owned())
}
