//! Sums that are computed before a barrier, where their summands are, and not behind it, where they are used.
//!
//! ```text
//! let sums = [x[0] + x[1], x[2] + x[3], ..];       // sixteen
//! barrier
//! if some { y[0] = sums[0]; y[1] = sums[1]; .. }
//! ```
//!
//! LLVM's passes move what has one use to the one block that uses it, across a barrier, too: each summand then has a
//! register until there, where its sum would have one for both; `ptxas` (13.5) leaves it so. So what is made of values
//! that are there before a barrier, and of which some are used for nothing else, is made before it, if that frees some
//! registers. LLVM's code generator moves such instructions as well: what holds a value there is a move of its own.

use std::collections::{HashMap, HashSet};

use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::types::AnyTypeEnum;
use inkwell::values::{
    BasicValue as _, BasicValueEnum, FunctionValue, InstructionOpcode, InstructionValue, Operand,
    PhiValue,
};

use kiln_ir::Effects;

use super::inline_ptx::InlinePtx;
use super::recomputed::{barriers, has_barrier, lost, result_of};
use crate::llvm::ask::value_of;
use crate::llvm::error::BackendError;
use crate::llvm::flow::{Flow, Place};

/// The least number of registers that have to become free for code of `ptxas`: a quarter of those that it makes do with. What is
/// used under a condition is then computed whether that holds or not.
pub(super) const WORTH: u32 = 8;

/// What holds a value where it is computed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Held {
    /// Inline PTX.
    ByPtx,
    /// Nothing: what runs on the host is to be right, not short of registers.
    #[cfg(feature = "gpu-on-host")]
    ByNothing,
}

/// Has sums computed before barriers where that frees as many registers as it has to be worth.
///
/// # Errors
/// If LLVM's builder refuses, which it does not.
pub(super) fn sum_early<'ctx>(
    context: &'ctx Context,
    module: &Module<'ctx>,
    (worth, held): (u32, Held),
) -> Result<(), BackendError> {
    for function in module.get_functions() {
        if !has_barrier(function) {
            continue;
        }
        let (flow, users) = (Flow::of(function), Users::of(function));
        let mut writing = Writing {
            context,
            builder: context.create_builder(),
            flow: &flow,
            behind: HashMap::new(),
            ends: HashMap::new(),
        };
        for (barrier, early) in early(function, (&flow, &users)) {
            let (kept, freed) = early.kept(&users);
            if freed >= worth {
                let barrier = (barrier_at(&flow, barrier)?, barrier);
                writing.write(barrier, &kept, (&users, held))?;
            }
        }
    }
    Ok(())
}

/// What can be computed before a barrier and is computed behind it, in order; for each how many registers fewer are
/// taken at the barrier then.
#[derive(Default)]
struct Early<'ctx> {
    values: Vec<(InstructionValue<'ctx>, u32)>,
    known: HashSet<InstructionValue<'ctx>>,
}

impl<'ctx> Early<'ctx> {
    /// The values that free registers, and those that these need, with how many registers become free.
    fn kept(&self, users: &Users<'ctx>) -> (Vec<InstructionValue<'ctx>>, u32) {
        let (mut kept, mut needed, mut all) = (Vec::new(), HashSet::new(), 0);
        for &(value, freed) in self.values.iter().rev() {
            let is_needed = needed.contains(&value);
            if is_needed || freed > 0 && !users.make_one_of(value) {
                kept.push(value);
                needed.extend(made_of(value));
                all += freed;
            }
        }
        kept.reverse();
        (kept, all)
    }
}

/// The instructions that use each of a function's values, one for each operand.
struct Users<'ctx>(HashMap<InstructionValue<'ctx>, Vec<InstructionValue<'ctx>>>);

impl<'ctx> Users<'ctx> {
    fn of(function: FunctionValue<'ctx>) -> Users<'ctx> {
        let mut users: HashMap<_, Vec<_>> = HashMap::new();
        let blocks = function.get_basic_block_iter();
        for user in blocks.flat_map(|block| block.get_instructions()) {
            for value in made_of(user) {
                users.entry(value).or_default().push(user);
            }
        }
        Users(users)
    }

    fn get(&self, value: InstructionValue<'ctx>) -> &[InstructionValue<'ctx>] {
        self.0.get(&value).map_or(&[], Vec::as_slice)
    }

    /// Whether a product may become one instruction with the sum that it is added to.
    fn make_one_of(&self, value: InstructionValue<'ctx>) -> bool {
        use InstructionOpcode as Op;
        let adds = |user: &InstructionValue<'ctx>| matches!(user.get_opcode(), Op::FAdd | Op::FSub);
        value.get_opcode() == Op::FMul && self.get(value).iter().any(adds)
    }
}

/// The instructions whose values an instruction uses.
fn made_of<'ctx>(user: InstructionValue<'ctx>) -> Vec<InstructionValue<'ctx>> {
    if let Ok(phi) = PhiValue::try_from(user) {
        let incoming = phi.get_incomings().map(|(value, _)| value);
        return incoming
            .filter_map(|value| value.as_instruction_value())
            .collect();
    }
    let operands = user.get_operands().flatten().filter_map(Operand::value);
    operands
        .filter_map(|operand| operand.as_instruction_value())
        .collect()
}

/// What can be computed before each barrier, with the barrier's place, in order.
fn early<'ctx>(
    function: FunctionValue<'ctx>,
    (flow, users): (&Flow<'ctx>, &Users<'ctx>),
) -> Vec<(Place, Early<'ctx>)> {
    let barriers = barriers(function, flow);
    let last_above = flow.last_above(&barriers);
    let mut found: Vec<(Place, Early<'ctx>)> = Vec::new();
    let mut numbers: HashMap<Place, usize> = HashMap::new();
    for (n, &block) in flow.blocks.iter().enumerate() {
        let mut above = flow.dominator(n).and_then(|before| last_above[before]);
        for value in block.get_instructions() {
            let Some(place) = flow.place(value) else {
                continue;
            };
            above = barriers.binary_search(&place).ok().map(|_| place).or(above);
            let Some(barrier) = above.filter(|&barrier| barrier != place) else {
                continue;
            };
            let next = found.len();
            let number = *numbers.entry(barrier).or_insert(next);
            if number == next {
                found.push((barrier, Early::default()));
            }
            let early = &mut found[number].1;
            if let Some(freed) = freed_by(value, (early, users), (flow, place, barrier)) {
                early.values.push((value, freed));
                early.known.insert(value);
            }
        }
    }
    found
}

/// How many registers fewer are taken at a barrier if a value behind it is computed before it; `None` if that cannot be, or
/// takes more.
fn freed_by<'ctx>(
    value: InstructionValue<'ctx>,
    (early, users): (&Early<'ctx>, &Users<'ctx>),
    (flow, place, barrier): (&Flow<'ctx>, Place, Place),
) -> Option<u32> {
    let as_often = |one, other| flow.runs_as_often(one, other) && flow.runs_as_often(other, one);
    if !is_sum(value) || !as_often(place, barrier) {
        return None;
    }
    let mut ends = 0;
    for operand in value.get_operands() {
        let operand = operand.and_then(Operand::value)?;
        let Some(made) = operand.as_instruction_value() else {
            continue;
        };
        let at = flow.place(made)?;
        if !early.known.contains(&made) && !flow.is_above(at, barrier) {
            return None;
        }
        // What is made outside of a loop has its register in all of its turns.
        if users.get(made).len() == 1 && flow.runs_as_often(barrier, at) {
            ends += width(made)?;
        }
    }
    ends.checked_sub(width(value)?)
}

/// Whether an instruction makes one number of others, and does nothing else.
fn is_sum(value: InstructionValue<'_>) -> bool {
    use InstructionOpcode as Op;
    let opcode = value.get_opcode();
    matches!(
        opcode,
        Op::FAdd | Op::FSub | Op::FMul | Op::Add | Op::Sub | Op::Mul | Op::And | Op::Or | Op::Xor
    ) && width(value).is_some()
}

/// Registers of 32 bits that a number takes.
fn width(value: InstructionValue<'_>) -> Option<u32> {
    let bits = match value.get_type() {
        AnyTypeEnum::IntType(ty) => ty.get_bit_width(),
        AnyTypeEnum::FloatType(ty) => ty.get_bit_width(),
        _ => return None,
    };
    matches!(bits, 32 | 64).then_some(bits / 32)
}

/// Behind all phis of a block is one place: the last of them stands for each. Another instruction is what it is.
fn last_phi(value: InstructionValue<'_>) -> InstructionValue<'_> {
    let is_phi = |next: &InstructionValue<'_>| next.get_opcode() == InstructionOpcode::Phi;
    let mut last = value;
    while let Some(next) = last.get_next_instruction().filter(is_phi) {
        last = next;
    }
    last
}

fn barrier_at<'ctx>(
    flow: &Flow<'ctx>,
    barrier: Place,
) -> Result<InstructionValue<'ctx>, BackendError> {
    let mut instructions = flow.blocks[barrier.block].get_instructions();
    let found = instructions.find(|instruction| flow.place(*instruction) == Some(barrier));
    found.ok_or_else(lost)
}

/// A barrier, and its place.
type Barrier<'ctx> = (InstructionValue<'ctx>, Place);

/// Moves values before barriers, in order, each behind the last of what it is made of. What one barrier has moved, others
/// are to know: it is not where it was.
struct Writing<'w, 'ctx> {
    context: &'ctx Context,
    builder: Builder<'ctx>,
    flow: &'w Flow<'ctx>,
    /// Behind what a moved value is; `None` where that is right before the barrier.
    behind: HashMap<InstructionValue<'ctx>, Option<InstructionValue<'ctx>>>,
    /// The last that was put behind an instruction.
    ends: HashMap<InstructionValue<'ctx>, InstructionValue<'ctx>>,
}

impl<'ctx> Writing<'_, 'ctx> {
    /// Moves values, and holds those there that are used behind the barrier.
    fn write(
        &mut self,
        barrier: Barrier<'ctx>,
        values: &[InstructionValue<'ctx>],
        (users, held): (&Users<'ctx>, Held),
    ) -> Result<(), BackendError> {
        let moved: HashSet<_> = values.iter().copied().collect();
        for &value in values {
            let behind = self.last_of(value, barrier.1);
            self.behind.insert(value, behind);
            value.remove_from_basic_block();
            self.go_behind(behind, barrier.0)?;
            self.builder.insert_instruction(&value, None);
            let is_used_behind = users.get(value).iter().any(|user| !moved.contains(user));
            let end = match is_used_behind && held == Held::ByPtx {
                true => self.hold(value)?,
                false => value,
            };
            if let Some(behind) = behind {
                self.ends.insert(behind, end);
            }
        }
        Ok(())
    }

    /// The last of what a value is made of, of what is not moved itself.
    fn last_of(
        &self,
        value: InstructionValue<'ctx>,
        barrier: Place,
    ) -> Option<InstructionValue<'ctx>> {
        let mut last: Option<(Place, InstructionValue<'ctx>)> = None;
        for made in made_of(value) {
            let made = match self.behind.get(&made) {
                Some(&behind) => behind?,
                None => last_phi(made),
            };
            let place = self.flow.place(made)?;
            if last.is_none_or(|(last, _)| self.flow.is_above(last, place)) {
                last = Some((place, made));
            }
        }
        // What is computed in a loop that has ended is not added up in it.
        let (place, last) = last?;
        self.flow.runs_as_often(place, barrier).then_some(last)
    }

    fn go_behind(
        &self,
        behind: Option<InstructionValue<'ctx>>,
        barrier: InstructionValue<'ctx>,
    ) -> Result<(), BackendError> {
        let Some(behind) = behind else {
            self.builder.position_before(&barrier);
            return Ok(());
        };
        let end = self.ends.get(&behind).copied().unwrap_or(behind);
        let next = end.get_next_instruction();
        self.builder.position_before(&next.ok_or_else(lost)?);
        Ok(())
    }

    /// Puts a move behind a value, of which LLVM's code generator has to leave it there. Gives the move.
    fn hold(&self, value: InstructionValue<'ctx>) -> Result<InstructionValue<'ctx>, BackendError> {
        let number = result_of(value).ok_or_else(lost)?;
        let is_float = matches!(number, BasicValueEnum::FloatValue(_));
        let (template, constraints) = match (width(value), is_float) {
            (Some(2), true) => ("mov.b64 $0, $1;", "=d,d"),
            (Some(2), false) => ("mov.b64 $0, $1;", "=l,l"),
            (_, true) => ("mov.b32 $0, $1;", "=f,f"),
            (_, false) => ("mov.b32 $0, $1;", "=r,r"),
        };
        let ptx = InlinePtx {
            template,
            constraints,
            // Loads may be moved across it, and what follows a branch may not take it along.
            effects: Effects::Convergent,
        };
        let call = ptx.call(
            self.context,
            &self.builder,
            Some(number.get_type()),
            &[number],
        )?;
        let holds = value_of(call, "a held number")?;
        let holds = holds.as_instruction_value().ok_or_else(lost)?;
        value.replace_all_uses_with(&holds);
        holds.set_operand(0, number);
        Ok(holds)
    }
}

#[cfg(test)]
mod tests {
    use super::super::recomputed::tests::rewritten;
    use super::*;

    const BARRIER: &str = "call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n";

    /// What is before the barrier of a function, and what is behind it, once sums are early.
    fn summed(body: &str, worth: u32) -> (String, String) {
        let text = format!(
            "declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)\n\
             define void @f(ptr addrspace(1) %x, float %k, i1 %some) {{\n{body}\n}}\n\0"
        );
        let text = rewritten(text, move |context, module| {
            sum_early(context, module, (worth, Held::ByPtx))
        });
        let parts = text.split_once("sync.aligned.all(i32 0)");
        let (before, behind) = parts.expect("a barrier");
        (before.to_owned(), behind.to_owned())
    }

    /// Loads of `count` pairs, a barrier, and behind a branch what is made of each pair by `made`.
    fn pairs(count: usize, made: &str) -> String {
        let (mut before, mut behind) = (String::new(), String::new());
        for n in 0..count {
            let load =
                |name: &str| format!("%{name}{n} = load volatile float, ptr addrspace(1) %x\n");
            before += &(load("a") + &load("b"));
            behind += &made.replace('#', &n.to_string());
            behind += &format!("store volatile float %r{n}, ptr addrspace(1) %x\n");
        }
        format!(
            "{before}{BARRIER}br i1 %some, label %then, label %out\nthen:\n{behind}br label %out\nout:\nret void"
        )
    }

    const SUMS: &str = "%s# = fadd float %a#, %b#\n%r# = fmul float %s#, %k\n";

    #[test]
    fn sums_are_made_before_a_barrier() {
        let (before, behind) = summed(&pairs(8, SUMS), WORTH);
        assert_eq!(before.matches("fadd").count(), 8, "{before}");
        assert_eq!(
            before.matches("asm sideeffect \"mov.b32").count(),
            8,
            "{before}"
        );
        // A product with a number that is there anyway frees no register.
        assert_eq!(behind.matches("fmul").count(), 8, "{behind}");
        let (before, _) = summed(&pairs(7, SUMS), WORTH);
        assert!(!before.contains("fadd"), "{before}");
    }

    #[test]
    fn a_sum_of_sums_is_held_once() {
        let made =
            "%s# = fadd float %a#, 1.0\n%t# = fsub float %b#, %k\n%r# = fadd float %s#, %t#\n";
        let (before, behind) = summed(&pairs(16, made), WORTH);
        assert_eq!(before.matches(" = f").count(), 48, "{before}");
        assert_eq!(before.matches("asm sideeffect").count(), 16, "{before}");
        assert!(!behind.contains("fadd"), "{behind}");
    }

    #[test]
    fn what_stays_behind_the_barrier() {
        let stays = |body: &str| {
            let (before, _) = summed(body, 1);
            assert!(!before.contains("asm"), "{before}");
        };
        // A summand that is used by itself, too, has its register in any case.
        stays(&pairs(
            16,
            "%s# = fadd float %a#, %k\n%r# = fadd float %s#, %a#\n",
        ));
        // A product that becomes one instruction with what it is added to.
        let fused = "%l# = load volatile float, ptr addrspace(1) %x\n%s# = fmul float %a#, %b#\n%r# = fadd float %s#, %l#\n";
        stays(&pairs(16, fused));
        // What divides may end the thread, or take long.
        stays(&pairs(16, "%r# = fdiv float %a#, %b#\n"));
    }

    #[test]
    fn what_one_barrier_moved_another_finds_there() {
        let load = |name: &str| format!("%{name} = load volatile float, ptr addrspace(1) %x\n");
        let (before, between) = (load("a") + &load("b"), load("c") + &load("d"));
        let body = format!(
            "{before}{BARRIER}{between}%r = fadd float %a, %b\n{BARRIER}%s = fadd float %c, %d\n\
             %t = fadd float %s, %r\nstore volatile float %t, ptr addrspace(1) %x\nret void"
        );
        let (before, behind) = summed(&body, 1);
        assert_eq!(before.matches("fadd").count(), 1, "{before}");
        let (between, _) = behind
            .split_once("sync.aligned.all(i32 0)")
            .expect("another");
        assert_eq!(between.matches("fadd").count(), 2, "{behind}");
    }

    #[test]
    fn what_is_made_of_two_choices_is_behind_both() {
        let body = format!(
            "br i1 %some, label %then, label %out\nthen:\nbr label %out\nout:\n\
             %a = phi float [ 1.0, %0 ], [ %k, %then ]\n%b = phi float [ 2.0, %0 ], [ %k, %then ]\n{BARRIER}\
             %r = fadd float %a, 1.0\n%s = fsub float %r, %b\nstore volatile float %s, ptr addrspace(1) %x\nret void"
        );
        let (before, _) = summed(&body, 1);
        assert_eq!(before.matches(" = f").count(), 2, "{before}");
    }

    #[test]
    fn loops_keep_what_is_theirs() {
        let in_a_loop = format!(
            "%a = load volatile float, ptr addrspace(1) %x\n%b = load volatile float, ptr addrspace(1) %x\n{BARRIER}\
             br label %again\nagain:\n%r = fadd float %a, %b\nstore volatile float %r, ptr addrspace(1) %x\n\
             br i1 %some, label %again, label %out\nout:\nret void"
        );
        assert!(!summed(&in_a_loop, 1).0.contains("asm"));
        // Read before the loop, the summands have registers in all of its turns.
        let around = format!(
            "%a = load volatile float, ptr addrspace(1) %x\n%b = load volatile float, ptr addrspace(1) %x\n\
             br label %again\nagain:\n{BARRIER}%r = fadd float %a, %b\nstore volatile float %r, ptr addrspace(1) %x\n\
             br i1 %some, label %again, label %out\nout:\nret void"
        );
        assert!(!summed(&around, 1).0.contains("asm"));
        let whole = format!(
            "br label %again\nagain:\n%a = load volatile float, ptr addrspace(1) %x\n\
             %b = load volatile float, ptr addrspace(1) %x\n{BARRIER}%r = fadd float %a, %b\n\
             store volatile float %r, ptr addrspace(1) %x\nbr i1 %some, label %again, label %out\nout:\nret void"
        );
        assert!(summed(&whole, 1).0.contains("asm"));
    }
}
