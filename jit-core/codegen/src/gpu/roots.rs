//! Square roots of `f32`, several by one question.
//!
//! Of `sqrt.rn.f32` `ptxas` makes five instructions for numbers from 2^-101 to the largest, and for all others a branch
//! around a call. So several roots of a thread wait for each other, and each takes time to assemble. The same five
//! instructions are written here for all roots that do not need each other, then one question: whether a number is none of
//! these (the largest of the bits less those of 2^-101). Only then zeros are put in as they are, and if that was not all,
//! each root is computed with scaling: smaller numbers are multiplied by 2^64 before and by 2^-32 behind, both exactly, and
//! zeros and infinity are their own roots. Negative numbers and NaN have some NaN of `rsqrt`.

use std::collections::HashMap;
use std::fmt::Write as _;

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{
    BasicValue as _, BasicValueEnum, FastMathFlags, InstructionOpcode, InstructionValue, Operand,
};

use kiln_ir::Effects;

use super::inline_ptx::InlinePtx;
use crate::llvm::ask::{aggregate, value_of};
use crate::llvm::error::BackendError;
use crate::llvm::inspect::{Called, called};

/// How many roots have one question at most: each takes a register for its number and one for itself.
const MOST: usize = 4;

/// A root of any number, of `$x` to `$y`.
const SCALED: &str = "setp.lt.f32 s, $x, 0f0F800000; mov.f32 w, $x; @s mul.f32 w, $x, 0f5F800000; \
    rsqrt.approx.ftz.f32 q, w; mul.ftz.f32 g, w, q; mul.ftz.f32 h, q, 0f3F000000; neg.f32 e, g; fma.rn.f32 e, e, g, w; \
    fma.rn.f32 g, e, h, g; @s mul.f32 g, g, 0f2F800000; setp.eq.f32 z, w, 0f00000000; setp.eq.or.f32 z, w, 0f7F800000, z; \
    selp.f32 $y, $x, g, z; ";

/// Writes the roots of a module that are rounded, and of which numbers below the normal ones are as others.
///
/// # Errors
/// If LLVM's builder refuses, which it does not.
pub(super) fn write_together<'ctx>(
    context: &'ctx Context,
    module: &Module<'ctx>,
) -> Result<(), BackendError> {
    let builder = context.create_builder();
    let flushes = "denormal-fp-math-f32";
    let keeps = module.get_functions().filter(|function| {
        let attribute = function.get_string_attribute(AttributeLoc::Function, flushes);
        attribute.is_none()
    });
    for block in keeps.flat_map(|function| function.get_basic_block_iter()) {
        let instructions: Vec<_> = block.get_instructions().collect();
        if !instructions.iter().any(|one| is_rounded_root(*one)) {
            continue;
        }
        let mut run = Run::default();
        for one in instructions {
            if !can_move(one, module) || run.is_full_for(one) {
                std::mem::take(&mut run).write((context, &builder), one)?;
            }
            if can_move(one, module) {
                run.add(one);
            }
        }
    }
    Ok(())
}

/// Instructions behind each other that may be in any order in which each comes after those it needs.
#[derive(Default)]
struct Run<'ctx> {
    /// Each with how many roots are computed one after the other before it.
    all: Vec<(InstructionValue<'ctx>, usize)>,
    /// By how many roots in a row each can be had.
    behind: HashMap<InstructionValue<'ctx>, usize>,
    /// The roots, by how many are computed one after the other before them.
    roots: Vec<Vec<InstructionValue<'ctx>>>,
}

impl<'ctx> Run<'ctx> {
    /// How many roots of the run are computed one after the other before an instruction.
    fn before(&self, one: InstructionValue<'ctx>) -> usize {
        let operands = one.get_operands().flatten().filter_map(Operand::value);
        let made = operands.filter_map(|operand| operand.as_instruction_value());
        let behind = made.filter_map(|made| self.behind.get(&made).copied());
        behind.max().unwrap_or(0)
    }

    fn is_full_for(&self, one: InstructionValue<'ctx>) -> bool {
        let beside = self.roots.get(self.before(one)).map_or(0, Vec::len);
        is_rounded_root(one) && beside >= MOST
    }

    fn add(&mut self, one: InstructionValue<'ctx>) {
        let before = self.before(one);
        let is_root = is_rounded_root(one);
        if is_root {
            self.roots
                .resize_with(self.roots.len().max(before + 1), Vec::new);
            self.roots[before].push(one);
        }
        self.behind.insert(one, before + usize::from(is_root));
        self.all.push((one, before));
    }

    /// Has what is computed come behind the roots that it need not come before, so that it takes no register there. Loads
    /// stay, as they take long.
    fn delay(&mut self) {
        let mut used: HashMap<InstructionValue<'ctx>, usize> = HashMap::new();
        for (one, before) in self.all.iter_mut().rev() {
            let stays = is_rounded_root(*one) || one.get_opcode() == InstructionOpcode::Load;
            if let (false, Some(used)) = (stays, used.get(one)) {
                *before = *used;
            }
            let operands = one.get_operands().flatten().filter_map(Operand::value);
            for made in operands.filter_map(|operand| operand.as_instruction_value()) {
                let first = used.entry(made).or_insert(*before);
                *first = (*first).min(*before);
            }
        }
    }

    /// Writes the roots; what follows the run is `next`.
    fn write(
        mut self,
        (context, builder): (&'ctx Context, &Builder<'ctx>),
        next: InstructionValue<'ctx>,
    ) -> Result<(), BackendError> {
        if self.roots.iter().any(|beside| beside.len() > 1) {
            self.delay();
            self.all
                .sort_by_key(|(one, before)| (*before, is_rounded_root(*one)));
            builder.position_before(&next);
            // Each keeps the line that it is of.
            builder.unset_current_debug_location();
            for (one, _) in &self.all {
                one.remove_from_basic_block();
                builder.insert_instruction(one, None);
            }
        }
        for beside in self.roots.iter().filter(|beside| !beside.is_empty()) {
            write_beside((context, builder), beside)?;
        }
        Ok(())
    }
}

/// Writes roots that stand behind each other.
fn write_beside<'ctx>(
    (context, builder): (&'ctx Context, &Builder<'ctx>),
    roots: &[InstructionValue<'ctx>],
) -> Result<(), BackendError> {
    let operands = roots.iter().map(|root| root.get_operand(0));
    let numbers: Vec<BasicValueEnum<'ctx>> = operands
        .filter_map(|operand| operand.and_then(Operand::value))
        .collect();
    let ty: BasicTypeEnum<'ctx> = context.f32_type().into();
    let result = match roots.len() {
        1 => ty,
        count => context.struct_type(&vec![ty; count], false).into(),
    };
    builder.position_before(&roots[0]);
    let template = template(roots.len());
    let outputs = vec!["=&f"; roots.len()];
    let constraints = [outputs, vec!["f"; roots.len()]].concat().join(",");
    let ptx = InlinePtx {
        template: &template,
        constraints: &constraints,
        effects: Effects::None,
    };
    let call = ptx.call(context, builder, Some(result), &numbers)?;
    let written = value_of(call, "a root")?;
    for (root, n) in roots.iter().zip(0..) {
        let value = match roots.len() {
            1 => written,
            _ => builder.build_extract_value(aggregate(written), n, "root")?,
        };
        if let Some(value) = value.as_instruction_value() {
            root.replace_all_uses_with(&value);
        }
    }
    for root in roots {
        root.erase_from_basic_block();
    }
    Ok(())
}

/// The PTX of so many roots: `$0` and further are the roots, behind them the numbers (`ptxas` of CUDA 13 for sm_75 to sm_120:
/// `MUFU.RSQ`, two `FMUL.FTZ`, two `FFMA`).
fn template(count: usize) -> String {
    let pairs = || (0..count).map(|n| (format!("${n}"), format!("${}", count + n)));
    let mut ptx = String::from(
        "{ .reg .f32 r, q, g, h, e, w, v; .reg .pred s, z, p; .reg .b32 m, u, k; mov.b32 m, 0; ",
    );
    let all_are_in = "setp.lt.u32 p, m, 0x72800000; @p bra DONE; ";
    for (y, x) in pairs() {
        // Writing to a string does not fail.
        let _ = write!(
            ptx,
            "rsqrt.approx.ftz.f32 r, {x}; mul.ftz.f32 g, {x}, r; mul.ftz.f32 h, r, 0f3F000000; neg.f32 e, g; \
             fma.rn.f32 e, e, g, {x}; fma.rn.f32 {y}, e, h, g; mov.b32 u, {x}; sub.u32 u, u, 0x0D000000; max.u32 m, m, u; "
        );
    }
    ptx += all_are_in;
    if count == 1 {
        return ptx + &SCALED.replace("$x", "$1").replace("$y", "$0") + "DONE: }";
    }
    ptx += "mov.b32 m, 0; ";
    for (y, x) in pairs() {
        let _ = write!(
            ptx,
            "setp.eq.f32 z, {x}, 0f00000000; selp.f32 {y}, {x}, {y}, z; selp.b32 u, 0x3F800000, {x}, z; \
             sub.u32 u, u, 0x0D000000; max.u32 m, m, u; "
        );
    }
    ptx += all_are_in;
    // The numbers go around with their roots, so that the code is there once.
    for (n, (_, x)) in pairs().enumerate() {
        let _ = write!(ptx, ".reg .f32 x{n}; mov.f32 x{n}, {x}; ");
    }
    ptx += "mov.b32 k, 0; MORE: .pragma \"nounroll\"; ";
    ptx += &SCALED.replace("$x", "x0").replace("$y", "v");
    ptx += "mov.f32 w, x0; ";
    for n in 1..count {
        let _ = write!(ptx, "mov.f32 x{}, x{n}; mov.f32 ${}, ${n}; ", n - 1, n - 1);
    }
    let last = count - 1;
    let _ = write!(
        ptx,
        "mov.f32 x{last}, w; mov.f32 ${last}, v; add.u32 k, k, 1; setp.lt.u32 p, k, {count}; @p bra MORE; DONE: }}"
    );
    ptx
}

/// Whether an instruction is the root of an `f32`, and not an approximation.
fn is_rounded_root(call: InstructionValue<'_>) -> bool {
    let is_root = call.get_opcode() == InstructionOpcode::Call
        && matches!(called(call), Some(Called::Function(name)) if name == "llvm.sqrt.f32");
    let flags = call.get_fast_math_flags().unwrap_or(FastMathFlags::empty());
    is_root && !flags.contains(FastMathFlags::ApproxFunc)
}

/// Whether an instruction may change places with others of which this is so: it writes nothing, what it reads none of
/// them writes, and it goes on.
fn can_move(one: InstructionValue<'_>, module: &Module<'_>) -> bool {
    use InstructionOpcode as Op;
    match one.get_opcode() {
        Op::Load => {
            let is_volatile = one.get_volatile().unwrap_or(true);
            !is_volatile && one.get_atomic_ordering().is_ok_and(is_no_order)
        }
        Op::Call => match called(one) {
            Some(Called::Function(name)) => module.get_function(&name).is_some_and(|function| {
                let kind = Attribute::get_named_enum_kind_id("speculatable");
                let attribute = function.get_enum_attribute(AttributeLoc::Function, kind);
                attribute.is_some()
            }),
            _ => false,
        },
        Op::Add
        | Op::Sub
        | Op::Mul
        | Op::And
        | Op::Or
        | Op::Xor
        | Op::Shl
        | Op::LShr
        | Op::AShr => true,
        Op::FAdd | Op::FSub | Op::FMul | Op::FDiv | Op::FRem | Op::FNeg => true,
        Op::UDiv | Op::SDiv | Op::URem | Op::SRem => true,
        Op::Trunc | Op::ZExt | Op::SExt | Op::FPTrunc | Op::FPExt | Op::BitCast => true,
        Op::FPToUI | Op::FPToSI | Op::UIToFP | Op::SIToFP | Op::PtrToInt | Op::IntToPtr => true,
        Op::AddrSpaceCast | Op::ICmp | Op::FCmp | Op::Select | Op::Freeze | Op::GetElementPtr => {
            true
        }
        Op::ExtractValue
        | Op::InsertValue
        | Op::ExtractElement
        | Op::InsertElement
        | Op::ShuffleVector => true,
        _ => false,
    }
}

fn is_no_order(ordering: inkwell::AtomicOrdering) -> bool {
    ordering == inkwell::AtomicOrdering::NotAtomic
}
