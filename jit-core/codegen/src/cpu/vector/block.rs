//! What a block does: the loop over the grid's blocks, and the branches and loops that all threads
//! of a block take together.

use std::collections::{BTreeMap, HashMap};

use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::builder::Builder;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{
    BasicValueEnum, FunctionValue, InstructionOpcode, IntValue, PointerValue, VectorValue,
};

use kiln_ir::legal::jumped_to;
use kiln_ir::{Control, FastMath, Inst, Uniformity, Value, ValueDef, Var};

use super::emit::{Built, Emit, unexpected};
use super::entry::Entry;
use super::leaf::{Leaf, Leaves};
use super::plan::Plan;
use super::warp::Warp;
use crate::llvm::ask::parameters;
use crate::llvm::error::BackendError;
use crate::simt::Item;

/// A variable of the block: its value before a segment, and after.
pub(super) struct BlockVar<'ctx> {
    pub(super) before: Vec<PointerValue<'ctx>>,
    pub(super) after: Vec<PointerValue<'ctx>>,
}

/// A loop of the block.
struct BlockLoop<'ctx> {
    next: BasicBlock<'ctx>,
    exit: BasicBlock<'ctx>,
}

/// Writes what a block does.
pub(super) struct BlockWriter<'w, 'm, 'ctx> {
    pub(super) emit: &'w Emit<'w, 'ctx>,
    pub(super) plan: &'w Plan<'m>,
    pub(super) entry: Entry<'ctx>,
    first: IntValue<'ctx>,
    count: IntValue<'ctx>,
    /// Values of the whole block that live across segments.
    pub(super) scalars: HashMap<Value, Vec<PointerValue<'ctx>>>,
    /// In the order of the kernel, in which they are written.
    pub(super) vars: BTreeMap<Var, BlockVar<'ctx>>,
    loops: Vec<BlockLoop<'ctx>>,
    /// How many blocks are run side by side now.
    pub(super) beside: IntValue<'ctx>,
    /// The coroutine that runs a warp, if warps are coroutines.
    pub(super) warp_function: Option<FunctionValue<'ctx>>,
}

impl<'w, 'm, 'ctx> BlockWriter<'w, 'm, 'ctx> {
    pub(super) fn new(
        emit: &'w Emit<'w, 'ctx>,
        plan: &'w Plan<'m>,
        function: FunctionValue<'ctx>,
        slots: Builder<'ctx>,
    ) -> Result<Self, BackendError> {
        let [launch, first, count, kept, arena] = parameters(function);
        let pointers = [launch, kept, arena].map(BasicValueEnum::into_pointer_value);
        let stopped = emit.context.append_basic_block(function, "stopped");
        let returns = emit.context.create_builder();
        returns.position_at_end(stopped);
        returns.build_return(None)?;
        let entry = Entry::new(emit, plan, function, slots, pointers, stopped)?;
        let (first, count) = (first.into_int_value(), count.into_int_value());
        Ok(BlockWriter::with(emit, plan, entry, [first, count]))
    }

    /// A writer for a function that has been begun.
    pub(super) fn with(
        emit: &'w Emit<'w, 'ctx>,
        plan: &'w Plan<'m>,
        entry: Entry<'ctx>,
        [first, count]: [IntValue<'ctx>; 2],
    ) -> Self {
        BlockWriter {
            emit,
            plan,
            entry,
            first,
            count,
            scalars: HashMap::new(),
            vars: BTreeMap::new(),
            loops: Vec::new(),
            beside: emit.i32(1),
            warp_function: None,
        }
    }

    pub(super) fn block(&self, name: &str) -> BasicBlock<'ctx> {
        self.emit
            .context
            .append_basic_block(self.entry.function, name)
    }

    pub(super) fn slot(
        &self,
        value: BasicValueEnum<'ctx>,
    ) -> Result<PointerValue<'ctx>, BackendError> {
        let slot = self.entry.slot(self.emit, value.get_type())?;
        self.emit.builder.build_store(slot, value)?;
        Ok(slot)
    }

    pub(super) fn read(&self, ty: BasicTypeEnum<'ctx>, slot: PointerValue<'ctx>) -> Built<'ctx> {
        Ok(self.emit.builder.build_load(ty, slot, "")?)
    }

    /// Writes the whole function, save the end of the block of stack slots.
    pub(super) fn write(mut self) -> Result<Builder<'ctx>, BackendError> {
        self.declare_kept()?;
        let emit = self.emit;
        let int: BasicTypeEnum<'ctx> = emit.int(32).into();
        let [x, y, _] = self.entry.grid;
        let wide = |value: IntValue<'ctx>| emit.resize(value.into(), 64, false);
        let narrow = |value: BasicValueEnum<'ctx>| emit.resize(value, 32, false);
        let divide = |a, b| emit.binary(InstructionOpcode::UDiv, a, b);
        let remainder = |a, b| emit.binary(InstructionOpcode::URem, a, b);
        let rows = divide(self.first.into(), wide(x)?)?;
        let start = [
            narrow(remainder(self.first.into(), wide(x)?)?)?,
            narrow(remainder(rows, wide(y)?)?)?,
            narrow(divide(rows, wide(y)?)?)?,
        ];
        let index = [
            self.slot(start[0])?,
            self.slot(start[1])?,
            self.slot(start[2])?,
        ];
        let left = self.slot(self.count.into())?;
        let (head, next, end) = (
            self.block("block"),
            self.block("block_end"),
            self.block("end"),
        );
        let none = emit.icmp(IntPredicate::EQ, self.count.into(), emit.i64(0).into())?;
        emit.builder
            .build_conditional_branch(none.into_int_value(), end, head)?;
        emit.builder.position_at_end(head);
        if self.plan.looks_before_blocks() {
            self.entry.look(emit)?;
        }
        for (i, &slot) in index.iter().enumerate() {
            self.entry.block_index[i] = self.read(int, slot)?.into_int_value();
        }
        if self.plan.block.beside > 1 {
            let left = self.read(emit.int(64).into(), left)?;
            self.beside = self.count_beside(left)?;
            if let Some(cond) = self.plan.agreed {
                self.beside = self.agreeing(cond)?;
            }
        }
        match self.warp_function {
            Some(function) => self.drive(function)?,
            None => {
                self.start_block()?;
                let plan = self.plan;
                self.items(&plan.segments.items)?;
            }
        }
        self.emit.jump(next)?;
        emit.builder.position_at_end(next);
        self.next_block(&index)?;
        self.count_down(left, (head, end))?;
        emit.builder.position_at_end(end);
        emit.builder.build_return(None)?;
        Ok(self.entry.slots)
    }

    /// As many less as have been run; to the first block if there are any left, else to the second.
    fn count_down(
        &self,
        counter: PointerValue<'ctx>,
        (yes, no): (BasicBlock<'ctx>, BasicBlock<'ctx>),
    ) -> Result<(), BackendError> {
        let count = self.read(self.emit.int(64).into(), counter)?;
        let run = self.emit.resize(self.beside.into(), 64, false)?;
        let count = self.emit.sub(count, run)?;
        self.emit.builder.build_store(counter, count)?;
        let any = self
            .emit
            .icmp(IntPredicate::NE, count, self.emit.i64(0).into())?;
        let builder = &self.emit.builder;
        builder.build_conditional_branch(any.into_int_value(), yes, no)?;
        Ok(())
    }

    /// The index of the next block behind those that have been run: x is the fastest.
    fn next_block(&self, index: &[PointerValue<'ctx>; 3]) -> Result<(), BackendError> {
        let emit = self.emit;
        let int: BasicTypeEnum<'ctx> = emit.int(32).into();
        let mut carry: BasicValueEnum<'ctx> = self.beside.into();
        for (i, &slot) in index.iter().enumerate() {
            let next = emit.add(self.read(int, slot)?, carry)?;
            if i == 2 {
                emit.builder.build_store(slot, next)?;
                continue;
            }
            let over = emit.icmp(IntPredicate::EQ, next, self.entry.grid[i].into())?;
            let zero = emit.i32(0).into();
            emit.builder
                .build_store(slot, emit.select(over, zero, next)?)?;
            carry = emit.resize(over, 32, false)?;
        }
        Ok(())
    }

    /// Places of what lives across segments for the block as a whole.
    fn declare_kept(&mut self) -> Result<(), BackendError> {
        let function = &self.plan.flat.function;
        for &value in &self.plan.segments.kept {
            if self.plan.uniformity.value(value) != Uniformity::Block {
                continue;
            }
            let slots = self.zeroed(function.type_of(value))?;
            self.scalars.insert(value, slots);
        }
        for &var in &self.plan.segments.kept_vars {
            if self.plan.uniformity.var(var) != Uniformity::Block {
                continue;
            }
            let ty = function.vars[var].ty;
            let var_slots = BlockVar {
                before: self.zeroed(ty)?,
                after: self.zeroed(ty)?,
            };
            self.vars.insert(var, var_slots);
        }
        Ok(())
    }

    fn zeroed(&self, ty: kiln_ir::Type) -> Result<Vec<PointerValue<'ctx>>, BackendError> {
        let mut slots = Vec::new();
        for leaf in self.plan.leaves(ty) {
            slots.push(self.slot(self.emit.leaf_type(leaf).const_zero())?);
        }
        Ok(slots)
    }

    /// All threads are there, and variables are zero.
    fn start_block(&mut self) -> Result<(), BackendError> {
        for var in self.vars.values() {
            for &slot in &var.before {
                let ty = slot_type(slot)?;
                self.emit.builder.build_store(slot, ty.const_zero())?;
            }
        }
        let plan = self.plan;
        if let Some(offset) = plan.arena.live {
            self.each_warp(|writer, warp, first| {
                let mask = writer.initial_mask(first)?;
                writer.write_live(offset, warp, mask)
            })?;
        }
        for &var in &plan.segments.kept_vars {
            let zero = !plan.scopes.home(var).assigned_first;
            if plan.uniformity.var(var) == Uniformity::Block || !zero {
                continue;
            }
            let warps = u64::from(plan.block.warps());
            let leaves = plan.leaves(plan.flat.function.vars[var].ty);
            for (leaf, &offset) in leaves.iter().zip(&plan.arena.vars[&var]) {
                let bytes = plan.slot_bytes(*leaf, plan.uniformity.var(var)) * warps;
                let at = self.emit.offset_const(self.entry.kept, offset)?;
                self.emit.clear(at, 64, self.emit.i64(bytes as i64))?;
            }
        }
        Ok(())
    }

    /// The lanes that have a thread.
    pub(super) fn initial_mask(
        &self,
        first: IntValue<'ctx>,
    ) -> Result<VectorValue<'ctx>, BackendError> {
        let block = self.plan.block;
        if !block.has_tail() {
            return Ok(self.emit.const_lanes(self.emit.int(1), |_| 1));
        }
        let lanes = Leaf::Affine {
            base: first.into(),
            stride: 1,
        };
        let lanes = lanes.vector(self.emit)?;
        let count = self.hidden(self.emit.i32(block.count()).into())?;
        let count = self.emit.splat(count)?;
        let there = self
            .emit
            .icmp(IntPredicate::ULT, lanes.into(), count.into())?;
        Ok(there.into_vector_value())
    }

    /// A value that LLVM takes for unknown.
    ///
    /// A mask of constants makes instruction selection compute with vectors that are constant in
    /// part. Where such a vector is wider than two registers, its combiner may rewrite `x + zext(c)`
    /// as `x - sext(c)` and back without end (LLVM 22, x86 with AVX-512).
    fn hidden(&self, value: BasicValueEnum<'ctx>) -> Built<'ctx> {
        let slot = self.slot(value)?;
        self.emit.load(value.get_type(), slot, 4, true)
    }

    fn live_slot(
        &self,
        offset: u64,
        warp: IntValue<'ctx>,
    ) -> Result<PointerValue<'ctx>, BackendError> {
        self.warp(warp, warp).live_slot(offset)
    }

    fn write_live(
        &self,
        offset: u64,
        warp: IntValue<'ctx>,
        mask: VectorValue<'ctx>,
    ) -> Result<(), BackendError> {
        self.warp(warp, warp).write_live(offset, mask)
    }

    pub(super) fn read_live(
        &self,
        offset: u64,
        warp: IntValue<'ctx>,
    ) -> Result<VectorValue<'ctx>, BackendError> {
        let slot = self.live_slot(offset, warp)?;
        let word = self.emit.mask_word()?;
        let bits = self.emit.load(word.into(), slot, 4, false)?;
        self.emit.mask_from_bits(bits)
    }

    /// Writes something for each warp, in a loop if there are several.
    pub(super) fn each_warp(
        &mut self,
        mut act: impl FnMut(&mut Self, IntValue<'ctx>, IntValue<'ctx>) -> Result<(), BackendError>,
    ) -> Result<(), BackendError> {
        if self.plan.block.beside > 1 {
            return self.each_warp_beside(self.beside, act);
        }
        let warps = self.plan.block.warps();
        let zero = self.emit.i32(0);
        if warps == 1 {
            return act(self, zero, zero);
        }
        let slot = self.slot(zero.into())?;
        let (head, end) = (self.block("each_warp"), self.block("warps_end"));
        self.emit.builder.build_unconditional_branch(head)?;
        self.emit.builder.position_at_end(head);
        let int: BasicTypeEnum<'ctx> = self.emit.int(32).into();
        let warp = self.read(int, slot)?;
        let lanes = self.emit.i32(self.plan.block.lanes).into();
        let first = self.emit.mul(warp, lanes)?;
        act(self, warp.into_int_value(), first.into_int_value())?;
        let next = self.emit.add(warp, self.emit.i32(1).into())?;
        self.emit.builder.build_store(slot, next)?;
        let more = self
            .emit
            .icmp(IntPredicate::ULT, next, self.emit.i32(warps).into())?;
        self.emit
            .builder
            .build_conditional_branch(more.into_int_value(), head, end)?;
        self.emit.builder.position_at_end(end);
        Ok(())
    }

    fn items(&mut self, items: &[Item]) -> Result<(), BackendError> {
        for item in items {
            self.item(item)?;
            if self.emit.has_left() {
                break;
            }
        }
        Ok(())
    }

    fn item(&mut self, item: &Item) -> Result<(), BackendError> {
        match item {
            Item::Run(id) => self.run(&[*id]),
            Item::If {
                cond,
                then_items,
                else_items,
            } => self.block_if(*cond, then_items, else_items),
            Item::Loop {
                inst,
                body,
                can_end,
                can_start_empty,
            } => {
                let exit = self.block("loop_end");
                if *can_start_empty {
                    self.leave_if_empty(exit)?;
                }
                self.block_loop(*inst, body, *can_end, exit)
            }
            Item::Leave { depth, again } => self.leave(*depth, *again),
        }
    }

    fn leave(&mut self, depth: u32, again: bool) -> Result<(), BackendError> {
        let target = jumped_to(&self.loops, depth);
        let to = if again { target.next } else { target.exit };
        self.emit.builder.build_unconditional_branch(to)?;
        Ok(())
    }

    fn block_if(
        &mut self,
        cond: Value,
        then_items: &[Item],
        else_items: &[Item],
    ) -> Result<(), BackendError> {
        let cond = self.uniform(cond)?.into_int_value();
        let (yes, no, next) = (self.block("then"), self.block("else"), self.block("join"));
        self.emit.builder.build_conditional_branch(cond, yes, no)?;
        for (block, items) in [(yes, then_items), (no, else_items)] {
            self.emit.builder.position_at_end(block);
            self.items(items)?;
            self.emit.jump(next)?;
        }
        self.emit.builder.position_at_end(next);
        Ok(())
    }

    /// Goes on only if a thread of the block has not ended.
    fn leave_if_empty(&mut self, exit: BasicBlock<'ctx>) -> Result<(), BackendError> {
        let Some(live) = self.plan.arena.live else {
            return Ok(());
        };
        let on = self.block("go_on");
        let any = self.any_live(live)?;
        self.emit.builder.build_conditional_branch(any, on, exit)?;
        self.emit.builder.position_at_end(on);
        Ok(())
    }

    fn block_loop(
        &mut self,
        inst: Inst,
        body: &[Item],
        can_end: bool,
        exit: BasicBlock<'ctx>,
    ) -> Result<(), BackendError> {
        let (head, next) = (self.block("loop"), self.block("next"));
        let counted = self.block_for(inst, exit)?;
        self.emit.jump(head)?;
        self.emit.builder.position_at_end(head);
        if let Some(counted) = &counted {
            let index = self.read(counted.start.get_type(), counted.slot)?;
            self.entry
                .values
                .insert(counted.index, Leaves::from_elem(Leaf::Uniform(index), 1));
        }
        self.loops.push(BlockLoop { next, exit });
        self.items(body)?;
        self.loops.pop();
        self.emit.jump(next)?;
        self.emit.builder.position_at_end(next);
        if self.plan.looks_each_turn(inst) {
            self.entry.look(self.emit)?;
        }
        if can_end {
            self.leave_if_empty(exit)?;
        }
        match counted {
            Some(counted) => self.block_for_next(&counted, head, exit)?,
            None => self.emit.jump(head)?,
        }
        self.emit.builder.position_at_end(exit);
        Ok(())
    }

    /// Whether a thread of the block has not ended, by the masks that are kept at an offset.
    fn any_live(&mut self, offset: u64) -> Result<IntValue<'ctx>, BackendError> {
        let word = self.emit.mask_word()?;
        let zero = word.const_zero().into();
        let all = self.slot(zero)?;
        let word: BasicTypeEnum<'ctx> = word.into();
        self.each_warp(|writer, warp, _| {
            let slot = writer.live_slot(offset, warp)?;
            let bits = writer.emit.load(word, slot, 4, false)?;
            let more = writer.emit.or(writer.read(word, all)?, bits)?;
            writer.emit.builder.build_store(all, more)?;
            Ok(())
        })?;
        let any = self
            .emit
            .icmp(IntPredicate::NE, self.read(word, all)?, zero)?;
        Ok(any.into_int_value())
    }

    /// A value that is the same in the whole block, between segments.
    fn uniform(&self, value: Value) -> Built<'ctx> {
        let mut warp = self.warp(self.emit.i32(0), self.emit.i32(0));
        self.rematerialize(&mut warp, value)?;
        warp.leaf(value)?.uniform()
    }

    /// Makes a value known to `warp`: from its place, or by computing it again.
    pub(super) fn rematerialize(
        &self,
        warp: &mut Warp<'_, 'm, 'ctx>,
        value: Value,
    ) -> Result<(), BackendError> {
        if warp.has(value) {
            return Ok(());
        }
        let function = &self.plan.flat.function;
        if let Some(slots) = self.scalars.get(&value) {
            let mut wide = Leaves::new();
            for (leaf, &slot) in self.plan.leaves(function.type_of(value)).iter().zip(slots) {
                wide.push(Leaf::Uniform(self.read(self.emit.leaf_type(*leaf), slot)?));
            }
            warp.define(value, wide);
            return Ok(());
        }
        let ValueDef::Inst(inst) = function.values[value].def else {
            return Err(unexpected("a value of the block that is not there"));
        };
        if function.insts[inst].data.is_local() {
            // It has been declared, and holds what was stored since.
            let address = warp.local_address(inst)?;
            warp.define(value, Leaves::from_elem(address, 1));
            return Ok(());
        }
        let mut operands = Vec::new();
        function.insts[inst]
            .data
            .for_each_operand(|v| operands.push(v));
        for operand in operands {
            self.rematerialize(warp, operand)?;
        }
        warp.inst(inst)
    }

    pub(super) fn warp<'s>(
        &'s self,
        warp: IntValue<'ctx>,
        first_thread: IntValue<'ctx>,
    ) -> Warp<'s, 'm, 'ctx> {
        Warp {
            emit: self.emit,
            kernel: self.plan,
            entry: &self.entry,
            warp,
            first_thread,
            fast: FastMath::NONE,
            values: HashMap::new(),
            vars: HashMap::new(),
            levels: Vec::new(),
            loops: Vec::new(),
            single: None,
        }
    }
}

/// A `for` of the whole block.
struct BlockFor<'ctx> {
    index: Value,
    slot: PointerValue<'ctx>,
    start: BasicValueEnum<'ctx>,
    end: BasicValueEnum<'ctx>,
    step: BasicValueEnum<'ctx>,
    signed: bool,
}

impl<'ctx> BlockWriter<'_, '_, 'ctx> {
    /// The start of a loop if it is a `for`: to `exit` if it has no iteration.
    fn block_for(
        &mut self,
        inst: Inst,
        exit: BasicBlock<'ctx>,
    ) -> Result<Option<BlockFor<'ctx>>, BackendError> {
        let function = &self.plan.flat.function;
        let Control::For {
            index,
            bounds: [start, end, step],
            ..
        } = function.insts[inst].data.control()
        else {
            return Ok(None);
        };
        let scalar = function.type_of(index).as_scalar();
        let start = self.uniform(start)?;
        let looping = BlockFor {
            index,
            slot: self.slot(start)?,
            start,
            end: self.uniform(end)?,
            step: self.uniform(step)?,
            signed: scalar.is_some_and(|s| s.is_signed_int()),
        };
        let enters = self.block_for_enters(&looping)?;
        let enter = self.block("enter");
        self.emit
            .builder
            .build_conditional_branch(enters.into_int_value(), enter, exit)?;
        self.emit.builder.position_at_end(enter);
        Ok(Some(looping))
    }

    /// Whether the step is positive, if it moves at all.
    fn rises(&self, looping: &BlockFor<'ctx>) -> Built<'ctx> {
        let zero = self.emit.int_like(0, looping.step);
        let predicate = if looping.signed {
            IntPredicate::SGT
        } else {
            IntPredicate::NE
        };
        self.emit.icmp(predicate, looping.step, zero)
    }

    fn block_for_enters(&self, looping: &BlockFor<'ctx>) -> Built<'ctx> {
        let emit = self.emit;
        let (start, end) = (looping.start, looping.end);
        let rises = self.rises(looping)?;
        if !looping.signed {
            return emit.and(rises, emit.icmp(IntPredicate::ULT, start, end)?);
        }
        let zero = emit.int_like(0, looping.step);
        let falls = emit.icmp(IntPredicate::SLT, looping.step, zero)?;
        let up = emit.and(rises, emit.icmp(IntPredicate::SLT, start, end)?)?;
        let down = emit.and(falls, emit.icmp(IntPredicate::SGT, start, end)?)?;
        emit.or(up, down)
    }

    /// The end of an iteration: one more while the bound is further away than a step.
    fn block_for_next(
        &self,
        looping: &BlockFor<'ctx>,
        head: BasicBlock<'ctx>,
        exit: BasicBlock<'ctx>,
    ) -> Result<(), BackendError> {
        let emit = self.emit;
        let index = self.read(looping.start.get_type(), looping.slot)?;
        let zero = emit.int_like(0, looping.step);
        let ahead = emit.sub(looping.end, index)?;
        let (distance, size) = if looping.signed {
            let rises = self.rises(looping)?;
            let behind = emit.sub(index, looping.end)?;
            let back = emit.sub(zero, looping.step)?;
            (
                emit.select(rises, ahead, behind)?,
                emit.select(rises, looping.step, back)?,
            )
        } else {
            (ahead, looping.step)
        };
        let more = emit.icmp(IntPredicate::UGT, distance, size)?;
        let next = emit.add(index, looping.step)?;
        emit.builder.build_store(looping.slot, next)?;
        emit.builder
            .build_conditional_branch(more.into_int_value(), head, exit)?;
        Ok(())
    }
}

/// The type of what a stack slot holds.
pub(super) fn slot_type<'ctx>(
    slot: PointerValue<'ctx>,
) -> Result<BasicTypeEnum<'ctx>, BackendError> {
    let alloca = slot.as_instruction();
    let ty = alloca.and_then(|a| a.get_allocated_type().ok());
    ty.ok_or_else(|| unexpected("a slot that is not on the stack"))
}
