//! Addresses that are computed again behind a barrier, and take no registers before it.
//!
//! The threads of a block bring a tile to shared memory, meet, and write it back when they are done. Where an element is,
//! LLVM computes once for both, and keeps one number for each element meanwhile; `ptxas` (13.5) leaves it so. With the
//! 32 registers a thread that it makes do with, nothing is left for what is loaded: of 16 loads that do not depend on each
//! other half wait for the other half. What a few additions give again is not worth a register.
//!
//! So what is cheap to compute from what is there anyway is computed again where it is used behind a barrier, if that
//! frees some registers. LLVM's code generator merges what is computed twice, so the second time begins with numbers
//! of which it does not see where they come from (Briggs, Cooper, Torczon: "Rematerialization", PLDI 1992). Where each side
//! computes them under its own conditions, LLVM's passes leave it so, and its code generator does not: see `apart`.

mod apart;

use std::collections::{HashMap, HashSet};

use inkwell::basic_block::BasicBlock;
use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::types::AnyTypeEnum;
use inkwell::values::{
    BasicValue as _, BasicValueEnum, FloatValue, FunctionValue, InstructionOpcode,
    InstructionValue, IntValue, Operand, PhiValue, PointerValue,
};

use kiln_ir::Effects;

use super::inline_ptx::InlinePtx;
use super::nvptx::{HIDDEN_ADDRESS, HIDDEN_WORD, is_barrier};
use crate::llvm::ask::value_of;
use crate::llvm::error::BackendError;
use crate::llvm::flow::{Flow, Place};

/// The least number of registers that have to become free for code of `ptxas`, half of those that it makes do with: below
/// that the suite's kernels became longer, and took no fewer.
pub(super) const WORTH: u32 = 16;

/// How many values are looked at in a function: what that takes grows with their square, and of so many most are not in
/// registers anyway.
const MANY: usize = 1000;

/// How many instructions are written again at most, for each use behind a barrier.
const EACH: usize = 4;

/// Computes addresses again behind barriers where that frees as many registers as it has to be worth.
///
/// # Errors
/// If LLVM's builder refuses, which it does not.
pub(super) fn recompute<'ctx>(
    context: &'ctx Context,
    module: &Module<'ctx>,
    worth: u32,
) -> Result<(), BackendError> {
    for function in module.get_functions() {
        if has_barrier(function) {
            let flow = Flow::of(function);
            Chosen::of(&Far::of(function, &flow), worth).write(context)?;
            apart::keep(context, (function, &Flow::of(function)), worth)?;
        }
    }
    Ok(())
}

pub(super) fn has_barrier(function: FunctionValue<'_>) -> bool {
    let mut instructions = function
        .get_basic_block_iter()
        .flat_map(|block| block.get_instructions());
    instructions.any(is_barrier)
}

/// A use behind a barrier that is behind what it uses.
#[derive(Copy, Clone)]
struct Use<'ctx> {
    user: InstructionValue<'ctx>,
    operand: u32,
    place: Place,
    barrier: Place,
}

/// What is computed before a barrier and used behind it.
#[derive(Default)]
struct Far<'ctx> {
    uses: HashMap<InstructionValue<'ctx>, Vec<Use<'ctx>>>,
    /// What has a register there whatever is done.
    kept: HashSet<InstructionValue<'ctx>>,
}

impl<'ctx> Far<'ctx> {
    fn of(function: FunctionValue<'ctx>, flow: &Flow<'ctx>) -> Far<'ctx> {
        let barriers = barriers(function, flow);
        let last_above = flow.last_above(&barriers);
        let above = |place: Place| {
            let own = barriers.partition_point(|&barrier| barrier < place);
            let own = own.checked_sub(1).map(|n| barriers[n]);
            let own = own.filter(|barrier| barrier.block == place.block);
            own.or_else(|| last_above[flow.dominator(place.block)?])
        };
        let mut far = Far::default();
        for &block in &flow.blocks {
            for user in block.get_instructions() {
                for (operand, value, place) in operands(user, flow) {
                    let made = flow.place(value);
                    let barrier = above(place);
                    let Some((made, barrier)) = made.zip(barrier) else {
                        continue;
                    };
                    if flow.is_above(made, barrier) {
                        let is_phi = user.get_opcode() == InstructionOpcode::Phi;
                        if is_phi || !is_cheap(value) || !flow.runs_as_often(place, made) {
                            far.kept.insert(value);
                        }
                        let uses = far.uses.entry(value).or_default();
                        uses.push(Use {
                            user,
                            operand,
                            place,
                            barrier,
                        });
                    }
                }
            }
        }
        far
    }
}

/// The places of a function's barriers, in order.
pub(super) fn barriers<'ctx>(function: FunctionValue<'ctx>, flow: &Flow<'ctx>) -> Vec<Place> {
    let blocks = function.get_basic_block_iter();
    let instructions = blocks.flat_map(|block| block.get_instructions());
    let barriers = instructions.filter(|instruction| is_barrier(*instruction));
    let mut barriers: Vec<Place> = barriers.filter_map(|at| flow.place(at)).collect();
    barriers.sort_unstable();
    barriers
}

/// The instructions whose values an instruction uses, and where it does: a choice at the end of the block it comes from.
fn operands<'ctx>(
    user: InstructionValue<'ctx>,
    flow: &Flow<'ctx>,
) -> Vec<(u32, InstructionValue<'ctx>, Place)> {
    if let Ok(phi) = PhiValue::try_from(user) {
        let incoming = (0..).zip(phi.get_incomings());
        let of_one = |(n, (value, from)): (u32, (BasicValueEnum<'ctx>, BasicBlock<'ctx>))| {
            Some((n, value.as_instruction_value()?, flow.end(from)?))
        };
        return incoming.filter_map(of_one).collect();
    }
    let Some(place) = flow.place(user) else {
        return Vec::new();
    };
    let operands = (0..).zip(user.get_operands());
    let of_one = |(n, operand): (u32, Option<Operand<'ctx>>)| {
        Some((n, operand?.value()?.as_instruction_value()?, place))
    };
    operands.filter_map(of_one).collect()
}

/// Whether computing a value again costs an instruction, and gives the same.
fn is_cheap(value: InstructionValue<'_>) -> bool {
    use InstructionOpcode as Op;
    let computes = matches!(
        value.get_opcode(),
        Op::Add
            | Op::Sub
            | Op::Mul
            | Op::Shl
            | Op::LShr
            | Op::AShr
            | Op::And
            | Op::Or
            | Op::Xor
            | Op::ZExt
            | Op::SExt
            | Op::Trunc
            | Op::GetElementPtr
    );
    let is_number = matches!(
        value.get_type(),
        AnyTypeEnum::IntType(_) | AnyTypeEnum::PointerType(_)
    );
    // What is undefined is something else each time.
    let is_defined = |operand: Option<Operand<'_>>| match operand.and_then(Operand::value) {
        Some(BasicValueEnum::IntValue(operand)) => !operand.is_undef(),
        Some(BasicValueEnum::PointerValue(operand)) => !operand.is_undef(),
        _ => false,
    };
    computes && is_number && value.get_operands().all(is_defined)
}

/// Registers of 32 bits that a value takes.
fn width(value: InstructionValue<'_>) -> u32 {
    match value.get_type() {
        AnyTypeEnum::IntType(ty) => ty.get_bit_width().div_ceil(32),
        AnyTypeEnum::PointerType(_) => 2,
        _ => 1,
    }
}

/// How many instructions a value is made of at most.
const LOOKED_AT: usize = 64;

/// What is computed again.
struct Chosen<'f, 'ctx> {
    far: &'f Far<'ctx>,
    values: HashSet<InstructionValue<'ctx>>,
}

impl<'f, 'ctx> Chosen<'f, 'ctx> {
    /// Nothing, if it frees too few registers or takes too many instructions.
    fn of(far: &'f Far<'ctx>, worth: u32) -> Chosen<'f, 'ctx> {
        let values = far.uses.keys().copied();
        let values = values.filter(|value| !far.kept.contains(value)).collect();
        let mut chosen = Chosen { far, values };
        if chosen.values.len() > MANY {
            chosen.values.clear();
        }
        while chosen.leave_out_what_frees_none() {}
        if chosen.freed() < worth || !chosen.is_short() {
            chosen.values.clear();
        }
        chosen
    }

    /// Whether a value gets a register, or has one anyway, for what is computed again of it.
    fn is_leaf(&self, value: InstructionValue<'ctx>) -> bool {
        let is_far = self.far.uses.contains_key(&value);
        !is_cheap(value) || is_far && !self.values.contains(&value)
    }

    /// What a value is computed of: what takes registers, and what is between. `None` if it is too much.
    fn made_of(
        &self,
        value: InstructionValue<'ctx>,
    ) -> Option<(
        HashSet<InstructionValue<'ctx>>,
        HashSet<InstructionValue<'ctx>>,
    )> {
        let (mut leaves, mut between) = (HashSet::new(), HashSet::from([value]));
        let mut left = vec![value];
        while let Some(value) = left.pop() {
            let operands = value.get_operands().flatten().filter_map(Operand::value);
            for operand in operands.filter_map(|operand| operand.as_instruction_value()) {
                if self.is_leaf(operand) {
                    leaves.insert(operand);
                } else if between.insert(operand) {
                    left.push(operand);
                }
            }
            if between.len() > LOOKED_AT {
                return None;
            }
        }
        Some((leaves, between))
    }

    /// The registers that are taken behind barriers and were not, with those that become free for each.
    fn taken(&self) -> HashMap<InstructionValue<'ctx>, u32> {
        let mut taken = HashMap::new();
        for &value in &self.values {
            let leaves = self
                .made_of(value)
                .map_or(HashSet::new(), |(leaves, _)| leaves);
            for leaf in leaves
                .into_iter()
                .filter(|leaf| !self.far.uses.contains_key(leaf))
            {
                *taken.entry(leaf).or_default() += width(value);
            }
        }
        taken
    }

    /// Leaves out values for which a register is taken that frees no other. Says whether there were any.
    fn leave_out_what_frees_none(&mut self) -> bool {
        let taken = self.taken();
        let frees = |leaf: &InstructionValue<'ctx>| {
            taken.get(leaf).is_none_or(|freed| *freed > width(*leaf))
        };
        let values = self.values.iter().copied();
        let stays = |value: &InstructionValue<'ctx>| {
            self.made_of(*value)
                .is_some_and(|(leaves, _)| leaves.iter().all(frees))
        };
        let stay: HashSet<_> = values.filter(stays).collect();
        let changed = stay.len() < self.values.len();
        self.values = stay;
        changed
    }

    /// How many registers become free.
    fn freed(&self) -> u32 {
        let freed: u32 = self.values.iter().map(|value| width(*value)).sum();
        let taken: u32 = self.taken().keys().map(|leaf| width(*leaf)).sum();
        freed.saturating_sub(taken)
    }

    /// The uses of what is computed again, in order.
    fn uses(&self) -> Vec<(Use<'ctx>, InstructionValue<'ctx>)> {
        let of_one = |value: &InstructionValue<'ctx>| {
            let value = *value;
            self.far.uses[&value].iter().map(move |at| (*at, value))
        };
        let mut uses: Vec<_> = self.values.iter().flat_map(of_one).collect();
        uses.sort_by_key(|(at, _)| (at.place, at.operand));
        uses
    }

    /// Whether few instructions are written for each use.
    fn is_short(&self) -> bool {
        let uses = self.uses();
        let mut written = HashSet::new();
        for (at, value) in &uses {
            let between = self
                .made_of(*value)
                .map_or(HashSet::new(), |(_, between)| between);
            written.extend(
                between
                    .into_iter()
                    .map(|value| (at.place.block, at.barrier, value)),
            );
        }
        written.len() <= EACH * uses.len()
    }

    fn write(&self, context: &'ctx Context) -> Result<(), BackendError> {
        let mut behind: HashMap<(usize, Place), Again<'_, 'ctx>> = HashMap::new();
        for (at, value) in self.uses() {
            let again = behind
                .entry((at.place.block, at.barrier))
                .or_insert_with(|| Again {
                    chosen: self,
                    context,
                    builder: context.create_builder(),
                    written: HashMap::new(),
                });
            again.builder.position_before(&at.user);
            let new = again.compute(value)?;
            at.user.set_operand(at.operand, new);
        }
        Ok(())
    }
}

/// What is computed again in a block behind a barrier.
struct Again<'c, 'ctx> {
    chosen: &'c Chosen<'c, 'ctx>,
    context: &'ctx Context,
    builder: Builder<'ctx>,
    written: HashMap<InstructionValue<'ctx>, BasicValueEnum<'ctx>>,
}

impl<'ctx> Again<'_, 'ctx> {
    /// Writes an instruction again, behind what it needs.
    fn compute(
        &mut self,
        value: InstructionValue<'ctx>,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        if let Some(&written) = self.written.get(&value) {
            return Ok(written);
        }
        let mut operands = Vec::new();
        for operand in value.get_operands() {
            let operand = operand.and_then(Operand::value).ok_or_else(lost)?;
            operands.push(self.operand(operand)?);
        }
        let again = value.explicit_clone();
        self.builder.insert_instruction(&again, None);
        for (n, operand) in (0..).zip(operands) {
            again.set_operand(n, operand);
        }
        let result = result_of(again).ok_or_else(lost)?;
        self.written.insert(value, result);
        Ok(result)
    }

    fn operand(
        &mut self,
        operand: BasicValueEnum<'ctx>,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        match operand.as_instruction_value() {
            Some(value) if !self.chosen.is_leaf(value) => self.compute(value),
            Some(value) => match self.written.get(&value) {
                Some(&hidden) => Ok(hidden),
                None => {
                    let hidden = self.hidden(operand)?;
                    self.written.insert(value, hidden);
                    Ok(hidden)
                }
            },
            None => Ok(operand),
        }
    }

    /// A number of which LLVM does not see where it comes from. Of an address it is to see that.
    fn hidden(&self, value: BasicValueEnum<'ctx>) -> Result<BasicValueEnum<'ctx>, BackendError> {
        let BasicValueEnum::IntValue(number) = value else {
            return Ok(value);
        };
        let (template, constraints) = match number.get_type().get_bit_width() {
            32 => HIDDEN_WORD,
            64 => HIDDEN_ADDRESS,
            _ => return Ok(value),
        };
        let ptx = InlinePtx {
            template,
            constraints,
            effects: Effects::None,
        };
        let call = ptx.call(
            self.context,
            &self.builder,
            Some(value.get_type()),
            &[value],
        )?;
        value_of(call, "a hidden number")
    }
}

/// The value that an instruction gives.
pub(super) fn result_of(instruction: InstructionValue<'_>) -> Option<BasicValueEnum<'_>> {
    let number = IntValue::try_from(instruction).map(BasicValueEnum::from);
    let address = || PointerValue::try_from(instruction).map(BasicValueEnum::from);
    let float = || FloatValue::try_from(instruction).map(BasicValueEnum::from);
    (number.or_else(|_| address()).or_else(|_| float())).ok()
}

pub(super) fn lost() -> BackendError {
    BackendError::new("emit", "an operand of arithmetic has no value")
}

#[cfg(test)]
pub(super) mod tests {
    use inkwell::memory_buffer::MemoryBuffer;

    use super::*;
    use crate::llvm::session::on_compile_thread;

    /// A module of LLVM's, which ends with a zero, as a rewriting leaves it; it has to be valid.
    pub(in crate::gpu) fn rewritten(
        text: String,
        rewrite: impl for<'ctx> FnOnce(&'ctx Context, &Module<'ctx>) -> Result<(), BackendError>
        + Send
        + 'static,
    ) -> String {
        let written = move || -> Result<String, BackendError> {
            let context = Context::create();
            let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "f");
            let module = context
                .create_module_from_ir(buffer)
                .map_err(|error| BackendError::new("parse", error.to_string_lossy()))?;
            rewrite(&context, &module)?;
            let valid = module.verify();
            valid.map_err(|error| BackendError::new("verify", error.to_string_lossy()))?;
            Ok(module.print_to_string().to_string_lossy().into_owned())
        };
        let text = on_compile_thread("rewritten", written).expect("LLVM is there");
        text.expect("it is a module")
    }

    /// The numbers that are hidden from LLVM, and the instructions that use one of them or what is made of one.
    fn again(body: &str, worth: u32) -> (usize, String) {
        let text = format!(
            "declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)\n\
             declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n\
             define void @f(ptr addrspace(1) %x, i32 %step) {{\n{body}\n}}\n\0"
        );
        let text = rewritten(text, move |context, module| {
            recompute(context, module, worth)
        });
        (text.matches("asm \"mov.b32").count(), text)
    }

    /// An element brought before a barrier and written behind it, for each of so many.
    fn tile(elements: u32) -> String {
        let mut before =
            "%t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n%i0 = add i32 %t, 1\n".to_owned();
        let mut behind = String::new();
        for n in 1..=elements {
            before += &format!(
                "%i{n} = add i32 %i{}, %step\n%z{n} = zext i32 %i{n} to i64\n",
                n - 1
            );
            before += &format!("%p{n} = getelementptr i32, ptr addrspace(1) %x, i64 %z{n}\n");
            before += &format!("%v{n} = load i32, ptr addrspace(1) %p{n}\n");
            behind += &format!("store i32 %v{n}, ptr addrspace(1) %p{n}\n");
        }
        let barrier = "call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n";
        format!("{before}{barrier}{behind}store i32 %t, ptr addrspace(1) %x\nret void")
    }

    #[test]
    fn addresses_behind_a_barrier_begin_anew_with_what_is_there() {
        let (hidden, text) = again(&tile(8), WORTH);
        assert_eq!(hidden, 1, "{text}");
        let (before, behind) = text
            .split_once("sync.aligned.all(i32 0)")
            .expect("a barrier");
        assert_eq!(before.matches("getelementptr").count(), 8, "{text}");
        assert_eq!(behind.matches("getelementptr").count(), 8, "{text}");
        // Each index is the one before and the step, as it was: nothing is computed twice behind the barrier.
        assert_eq!(behind.matches("add i32").count(), 9, "{text}");
        for n in 1..=8 {
            assert!(!behind.contains(&format!("%p{n}\n")), "{text}");
        }
    }

    /// An element brought before a barrier and written behind it, each under a condition of its own.
    fn guarded(elements: u32) -> String {
        let mut text = "%t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n%i = add i32 %t, 1\n\
                        %c = icmp ult i32 %t, %step\n"
            .to_owned();
        for (side, access) in [("a", "load i32,"), ("b", "store i32 %t,")] {
            for n in 1..=elements {
                let given = if side == "a" {
                    format!("%v{n} = ")
                } else {
                    String::new()
                };
                text += &format!(
                    "br i1 %c, label %{side}{n}, label %{side}past{n}\n{side}{n}:\n\
                     %{side}s{n} = mul i32 %step, {n}\n%{side}i{n} = add i32 %i, %{side}s{n}\n\
                     %{side}z{n} = zext i32 %{side}i{n} to i64\n\
                     %{side}p{n} = getelementptr i32, ptr addrspace(1) %x, i64 %{side}z{n}\n\
                     {given}{access} ptr addrspace(1) %{side}p{n}\n\
                     br label %{side}past{n}\n{side}past{n}:\n"
                );
            }
            if side == "a" {
                text += "call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n";
            }
        }
        text + "ret void"
    }

    #[test]
    fn what_both_sides_compute_under_conditions_stays_apart() {
        let (hidden, text) = again(&guarded(8), WORTH);
        assert_eq!(hidden, 1, "{text}");
        let (before, behind) = text
            .split_once("sync.aligned.all(i32 0)")
            .expect("a barrier");
        assert_eq!(before.matches("add i32 %i,").count(), 8, "{text}");
        assert_eq!(behind.matches("add i32 %i,").count(), 0, "{text}");
        assert_eq!(behind.matches("= add i32").count(), 8, "{text}");
        assert_eq!(again(&guarded(7), WORTH).0, 0);
    }

    #[test]
    fn few_registers_are_no_reason() {
        let (hidden, text) = again(&tile(7), WORTH);
        assert_eq!(hidden, 0, "{text}");
        assert_eq!(again(&tile(7), 14).0, 1);
    }

    #[test]
    fn very_many_are_left_as_they_are() {
        assert_eq!(again(&tile(MANY as u32 + 1), WORTH).0, 0);
        assert_ne!(again(&tile(MANY as u32 / 2), WORTH).0, 0);
    }

    #[test]
    fn what_comes_out_of_memory_is_not_read_again() {
        let body = "%a = load i32, ptr addrspace(1) %x\n%b = add i32 %a, %step\n%z = zext i32 %b to i64\n\
                    call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n\
                    %p = getelementptr i32, ptr addrspace(1) %x, i64 %z\n\
                    store i32 %b, ptr addrspace(1) %p\nret void";
        let (hidden, text) = again(body, 1);
        assert_eq!(text.matches("load").count(), 1, "{text}");
        // Two numbers of three registers are made of one.
        assert_eq!(hidden, 1, "{text}");
    }

    #[test]
    fn what_a_loop_uses_is_computed_before_it() {
        let body = "%t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n%b = mul i32 %t, %step\n%z = zext i32 %b to i64\n\
                    call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\nbr label %again\nagain:\n\
                    %p = getelementptr i32, ptr addrspace(1) %x, i64 %z\nstore i32 %t, ptr addrspace(1) %p\n\
                    %more = icmp eq i32 %b, %t\nbr i1 %more, label %again, label %out\nout:\nret void";
        let (hidden, text) = again(body, 1);
        assert_eq!(hidden, 0, "{text}");
    }

    #[test]
    fn what_is_undefined_is_one_number() {
        let body = "%b = add i32 undef, %step\n%c = zext i32 %b to i64\n%d = shl i64 %c, 1\n%e = shl i64 %c, 2\n\
                    call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n\
                    %p = getelementptr i32, ptr addrspace(1) %x, i64 %d\n\
                    %q = getelementptr i32, ptr addrspace(1) %x, i64 %e\n\
                    store i32 1, ptr addrspace(1) %p\nstore i32 1, ptr addrspace(1) %q\nret void";
        let (hidden, text) = again(body, 1);
        assert_eq!(text.matches("i32 undef").count(), 1, "{text}");
        assert_eq!(hidden, 1, "{text}");
    }
}
