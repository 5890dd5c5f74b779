//! Control flow in a warp: masks.
//!
//! Where lanes part, each side runs with the lanes that took it. A [`Level`] is a part of the
//! kernel that not all lanes came along to, with the mask of those that are still there; lanes
//! leave it for good by `break`, `continue`, `return` or a fault. At every instruction at least one
//! lane is active: where the last one may have left, control goes on at the level's end.
//!
//! Conditions that are the same in all lanes stay branches, and loops whose lanes stay together
//! stay loops without a mask of their own.

use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::values::{BasicValueEnum, IntValue, PointerValue, VectorValue};

use kiln_ir::legal::jumped_to;
use kiln_ir::{Constant, Inst, Region, Uniformity, Value, ValueDef};

use super::Warp;
use super::leaf::{Leaf, Leaves};
use crate::llvm::ask::current_block;
use crate::llvm::error::BackendError;
use crate::llvm::unrolled::hint_unroll_of_vectors;

/// A part of the kernel that some lanes run.
pub(super) struct Level<'ctx> {
    /// Where the mask of the lanes that are still there is kept.
    pub(super) mask: PointerValue<'ctx>,
    /// Where control goes on when none is left.
    pub(super) exit: BasicBlock<'ctx>,
}

/// How many levels, from the outermost, lose the lanes that end as soon as they do.
const LEVELS_AT_ONCE: usize = 8;

/// A loop around the current instruction.
pub(super) struct LoopState<'ctx> {
    /// If lanes leave it at different times: its level; the level above is its iteration's.
    level: Option<usize>,
    /// Where `continue` of all lanes goes.
    pub(super) next: BasicBlock<'ctx>,
    /// Where `break` of all lanes goes.
    exit: BasicBlock<'ctx>,
}

/// A `for`, its operands taken.
struct ForLoop<'ctx> {
    inst: Inst,
    index: Value,
    body: Region,
    start: Leaf<'ctx>,
    end: Leaf<'ctx>,
    step: Leaf<'ctx>,
    signed: bool,
    /// The sign of the step, if it is known.
    direction: Option<bool>,
}

impl<'ctx> Warp<'_, '_, 'ctx> {
    pub(super) fn block(&self, name: &str) -> BasicBlock<'ctx> {
        self.emit
            .context
            .append_basic_block(self.entry.function, name)
    }

    pub(super) fn current_block(&self) -> Result<BasicBlock<'ctx>, BackendError> {
        current_block(&self.emit.builder)
    }

    /// Whether control has left the current place.
    pub(super) fn has_left(&self) -> bool {
        self.emit.has_left()
    }

    pub(super) fn jump(&self, to: BasicBlock<'ctx>) -> Result<(), BackendError> {
        self.emit.jump(to)
    }

    /// Branches to `yes`, as nearly always.
    pub(super) fn likely(
        &self,
        cond: IntValue<'ctx>,
        yes: BasicBlock<'ctx>,
        no: BasicBlock<'ctx>,
    ) -> Result<(), BackendError> {
        self.emit.likely(cond, yes, no)
    }

    /// The lanes that are active here.
    pub(super) fn mask(&self) -> Result<VectorValue<'ctx>, BackendError> {
        self.read_mask(self.level().mask)
    }

    pub(super) fn read_mask(
        &self,
        slot: PointerValue<'ctx>,
    ) -> Result<VectorValue<'ctx>, BackendError> {
        let ty = self.emit.mask_type();
        Ok(self
            .emit
            .builder
            .build_load(ty, slot, "mask")?
            .into_vector_value())
    }

    pub(super) fn push_level(
        &mut self,
        mask: VectorValue<'ctx>,
        exit: BasicBlock<'ctx>,
    ) -> Result<(), BackendError> {
        let slot = self.entry.slot(self.emit, self.emit.mask_type().into())?;
        self.emit.builder.build_store(slot, mask)?;
        self.levels.push(Level { mask: slot, exit });
        Ok(())
    }

    /// Takes lanes off these levels.
    fn take_off<'l>(
        &self,
        lanes: VectorValue<'ctx>,
        levels: impl IntoIterator<Item = &'l Level<'ctx>>,
    ) -> Result<(), BackendError>
    where
        'ctx: 'l,
    {
        let stay = self.emit.not(lanes.into())?;
        for level in levels {
            let mask = self.read_mask(level.mask)?;
            let rest = self.emit.and(mask.into(), stay)?;
            self.emit.builder.build_store(level.mask, rest)?;
        }
        Ok(())
    }

    /// Ends the threads of these lanes. Levels far in, save the current one, learn of it when control
    /// comes back to them ([`Warp::settle`]): else what a fault writes would grow with the depth, and
    /// the whole with its square.
    pub(super) fn end_lanes(&mut self, lanes: VectorValue<'ctx>) -> Result<(), BackendError> {
        let (outer, inner) = self.levels.split_at(self.levels.len().min(LEVELS_AT_ONCE));
        self.take_off(lanes, outer.iter().chain(inner.last()))?;
        match (self.kernel.arena.live, self.levels.first()) {
            (Some(offset), Some(level)) => {
                let left = self.read_mask(level.mask)?;
                self.write_live(offset, left)
            }
            _ => Ok(()),
        }
    }

    /// Where other segments find which threads of this warp have not ended.
    pub(super) fn live_slot(&self, offset: u64) -> Result<PointerValue<'ctx>, BackendError> {
        let start = self.emit.offset_const(self.entry.kept, offset)?;
        self.of_this_warp(start, self.kernel.mask_bytes())
    }

    pub(super) fn write_live(
        &self,
        offset: u64,
        mask: VectorValue<'ctx>,
    ) -> Result<(), BackendError> {
        let bits = self.emit.mask_as_word(mask)?;
        let slot = self.live_slot(offset)?;
        self.emit.store(slot, bits.into(), 4, false)
    }

    /// Goes on in `next` if a lane is left, at the end of the level otherwise.
    pub(super) fn continue_if_any(&self, next: BasicBlock<'ctx>) -> Result<(), BackendError> {
        let any = self.emit.any(self.mask()?)?;
        let exit = self.level_exit();
        self.emit
            .builder
            .build_conditional_branch(any, next, exit)?;
        Ok(())
    }

    /// The current level: a warp begins with one.
    fn level(&self) -> &Level<'ctx> {
        self.levels.last().expect("a warp begins with a level")
    }

    pub(super) fn level_exit(&self) -> BasicBlock<'ctx> {
        self.level().exit
    }

    /// Ends the threads of all active lanes.
    pub(super) fn leave_all(&mut self, mask: VectorValue<'ctx>) -> Result<(), BackendError> {
        self.end_lanes(mask)?;
        let exit = self.level_exit();
        self.emit.builder.build_unconditional_branch(exit)?;
        Ok(())
    }

    /// Takes the lanes that have ended in `region` off the current level, if it is one that is not told
    /// at once. To be called where an inner level has been left.
    fn settle(&self, region: Region) -> Result<(), BackendError> {
        let (Some(whole), Some(current)) = (self.levels.first(), self.levels.last()) else {
            return Ok(());
        };
        if self.levels.len() <= LEVELS_AT_ONCE || !self.can_leave(region) {
            return Ok(());
        }
        let (live, mask) = (self.read_mask(whole.mask)?, self.read_mask(current.mask)?);
        let left = self.emit.and(mask.into(), live.into())?;
        self.emit.builder.build_store(current.mask, left)?;
        Ok(())
    }

    /// After a construct that lanes may have left for good.
    fn after(&mut self, region_can_leave: bool) -> Result<(), BackendError> {
        if !region_can_leave {
            return Ok(());
        }
        let next = self.block("rest");
        self.continue_if_any(next)?;
        self.emit.builder.position_at_end(next);
        Ok(())
    }

    /// Whether lanes that enter a region may not come out at its end.
    fn can_leave(&self, region: Region) -> bool {
        let function = self.function();
        function.regions[region].insts.iter().any(|&inst| {
            let data = &function.insts[inst].data;
            data.is_terminator()
                || data.can_fault()
                || data.regions().iter().any(|&r| self.can_leave(r))
        })
    }

    pub(super) fn region(&mut self, region: Region) -> Result<(), BackendError> {
        let function = self.function();
        for &inst in &function.regions[region].insts {
            self.inst(inst)?;
            if self.has_left() {
                break;
            }
        }
        Ok(())
    }

    pub(super) fn if_(
        &mut self,
        inst: Inst,
        cond: Value,
        arms: (Region, Option<Region>),
    ) -> Result<(), BackendError> {
        if self.kernel.uniformity.control(inst) == Uniformity::Lane {
            self.divergent_if(cond, arms)
        } else {
            self.uniform_if(self.leaf(cond)?, arms)
        }
    }

    fn uniform_if(
        &mut self,
        cond: Leaf<'ctx>,
        (then_region, else_region): (Region, Option<Region>),
    ) -> Result<(), BackendError> {
        let cond = cond.uniform()?.into_int_value();
        let (yes, next) = (self.block("then"), self.block("join"));
        let no = else_region.map_or(next, |_| self.block("else"));
        self.emit.builder.build_conditional_branch(cond, yes, no)?;
        self.emit.builder.position_at_end(yes);
        self.region(then_region)?;
        self.jump(next)?;
        if let Some(else_region) = else_region {
            self.emit.builder.position_at_end(no);
            self.region(else_region)?;
            self.jump(next)?;
        }
        self.emit.builder.position_at_end(next);
        Ok(())
    }

    fn divergent_if(
        &mut self,
        cond: Value,
        (then_region, else_region): (Region, Option<Region>),
    ) -> Result<(), BackendError> {
        let outer = self.single;
        let single = match outer {
            Some(_) => outer,
            None => self.single_lane(cond, then_region)?,
        };
        let cond = self.leaf(cond)?.vector(self.emit)?;
        let mask = self.mask()?;
        let with = self.emit.and(mask.into(), cond.into())?;
        self.single = single;
        self.arm(with.into_vector_value(), then_region)?;
        self.single = outer;
        if let Some(else_region) = else_region {
            let not = self.emit.not(cond.into())?;
            let without = self.emit.and(mask.into(), not)?;
            self.arm(without.into_vector_value(), else_region)?;
        }
        let regions = std::iter::once(then_region).chain(else_region);
        let leaves = regions.into_iter().any(|r| self.can_leave(r));
        self.after(leaves)
    }

    /// Runs a region for some lanes, if there are any.
    fn arm(&mut self, mask: VectorValue<'ctx>, region: Region) -> Result<(), BackendError> {
        let (enter, next) = (self.block("arm"), self.block("arm_end"));
        let any = self.emit.any(mask)?;
        self.emit
            .builder
            .build_conditional_branch(any, enter, next)?;
        self.emit.builder.position_at_end(enter);
        self.push_level(mask, next)?;
        self.region(region)?;
        self.jump(next)?;
        self.levels.pop();
        self.emit.builder.position_at_end(next);
        self.settle(region)
    }

    /// Makes the loop's level, if its lanes part.
    pub(super) fn enter_loop(
        &mut self,
        divergent: bool,
        next: BasicBlock<'ctx>,
        exit: BasicBlock<'ctx>,
    ) -> Result<(), BackendError> {
        let level = if divergent {
            let mask = self.mask()?;
            self.push_level(mask, exit)?;
            Some(self.levels.len() - 1)
        } else {
            None
        };
        self.loops.push(LoopState { level, next, exit });
        Ok(())
    }

    /// The lanes that are still in the innermost loop, if it has a level.
    pub(super) fn active_lanes(&self) -> Result<Option<VectorValue<'ctx>>, BackendError> {
        let level = self.loops.last().and_then(|l| l.level);
        level
            .map(|level| self.read_mask(self.levels[level].mask))
            .transpose()
    }

    pub(super) fn start_iteration(&mut self, next: BasicBlock<'ctx>) -> Result<(), BackendError> {
        if let Some(active) = self.active_lanes()? {
            self.push_level(active, next)?;
        }
        Ok(())
    }

    pub(super) fn end_iteration(&mut self, body: Region) -> Result<(), BackendError> {
        if self.loops.last().is_some_and(|l| l.level.is_some()) {
            self.levels.pop();
            self.settle(body)?;
        }
        Ok(())
    }

    pub(super) fn leave_loop(
        &mut self,
        exit: BasicBlock<'ctx>,
        body: Region,
    ) -> Result<(), BackendError> {
        let state = self.loops.pop();
        self.emit.builder.position_at_end(exit);
        if state.is_some_and(|s| s.level.is_some()) {
            self.levels.pop();
            self.settle(body)?;
            let leaves = self.can_leave(body);
            self.after(leaves)?;
        }
        Ok(())
    }

    pub(super) fn break_(&mut self, depth: u32) -> Result<(), BackendError> {
        let &LoopState { level, exit, .. } = jumped_to(&self.loops, depth);
        self.lanes_leave(level, exit)
    }

    pub(super) fn continue_(&mut self, depth: u32) -> Result<(), BackendError> {
        let &LoopState { level, next, .. } = jumped_to(&self.loops, depth);
        // The lanes stay in the loop but are done with its iteration.
        self.lanes_leave(level.map(|l| l + 1), next)
    }

    /// The active lanes leave all levels from `level` on, or go to `block` together.
    fn lanes_leave(
        &mut self,
        level: Option<usize>,
        block: BasicBlock<'ctx>,
    ) -> Result<(), BackendError> {
        let Some(level) = level else {
            self.emit.builder.build_unconditional_branch(block)?;
            return Ok(());
        };
        let mask = self.mask()?;
        self.take_off(mask, &self.levels[level..])?;
        let exit = self.level_exit();
        self.emit.builder.build_unconditional_branch(exit)?;
        Ok(())
    }

    pub(super) fn return_(&mut self) -> Result<(), BackendError> {
        let mask = self.mask()?;
        self.leave_all(mask)
    }

    pub(super) fn for_(
        &mut self,
        inst: Inst,
        index: Value,
        [start, end, step]: [Value; 3],
        body: Region,
    ) -> Result<(), BackendError> {
        let signed = self.scalar_of(index).is_signed_int();
        let looping = ForLoop {
            inst,
            index,
            body,
            start: self.leaf(start)?,
            end: self.leaf(end)?,
            step: self.leaf(step)?,
            signed,
            direction: self.direction(step, signed),
        };
        let uniform = [looping.start, looping.end, looping.step]
            .iter()
            .all(|leaf| matches!(leaf, Leaf::Uniform(_)));
        if uniform {
            self.uniform_for(looping)
        } else {
            self.divergent_for(looping)
        }
    }

    /// Whether the step is known to be positive or negative.
    fn direction(&self, step: Value, signed: bool) -> Option<bool> {
        let function = self.function();
        let ValueDef::Inst(def) = function.values[step].def else {
            return None;
        };
        match function.insts[def].data.constant()? {
            Constant::Int(n) if n > 0 => Some(true),
            Constant::Int(n) if n < 0 && signed => Some(false),
            _ => None,
        }
    }

    /// The index is a scalar; lanes may leave the loop on their own all the same.
    fn uniform_for(&mut self, looping: ForLoop<'ctx>) -> Result<(), BackendError> {
        let (head, next, exit) = (self.block("for"), self.block("next"), self.block("for_end"));
        let divergent = self.kernel.uniformity.control(looping.inst) == Uniformity::Lane;
        let (start, step) = (looping.start.uniform()?, looping.step.uniform()?);
        let (enters, size) = self.enters(&looping)?;
        let enter = self.block("for_enter");
        self.emit
            .builder
            .build_conditional_branch(enters.into_int_value(), enter, exit)?;
        self.emit.builder.position_at_end(enter);
        let slot = self.entry.slot(self.emit, start.get_type())?;
        self.emit.builder.build_store(slot, start)?;
        let looks = self.looks(looping.body, self.emit.int_bits(start) <= 32)?;
        self.enter_loop(divergent, next, exit)?;
        self.jump(head)?;
        self.emit.builder.position_at_end(head);
        let index = self
            .emit
            .builder
            .build_load(start.get_type(), slot, "index")?;
        self.define(looping.index, Leaves::from_elem(Leaf::Uniform(index), 1));
        self.start_iteration(next)?;
        self.region(looping.body)?;
        self.jump(next)?;
        self.emit.builder.position_at_end(next);
        self.end_iteration(looping.body)?;
        self.look(looks)?;
        let index = self
            .emit
            .builder
            .build_load(start.get_type(), slot, "index")?;
        let distance = self.distance(&looping, index)?;
        let mut more = self.emit.icmp(IntPredicate::UGT, distance, size)?;
        if let Some(active) = self.active_lanes()? {
            let any = self.emit.any(active)?;
            more = self.emit.and(more, any.into())?;
        }
        let stepped = self.emit.add(index, step)?;
        self.emit.builder.build_store(slot, stepped)?;
        let more = more.into_int_value();
        let back = self
            .emit
            .builder
            .build_conditional_branch(more, head, exit)?;
        let asking = (self.function(), looping.inst);
        let body = instructions_from(head);
        let left = hint_unroll_of_vectors(self.emit.context, back, asking, body);
        self.emit
            .left_as_loop
            .set(self.emit.left_as_loop.get().or(left));
        self.leave_loop(exit, looping.body)
    }

    /// Lanes have bounds of their own. An affine start and a uniform step keep the index affine.
    fn divergent_for(&mut self, looping: ForLoop<'ctx>) -> Result<(), BackendError> {
        let (head, next, exit) = (self.block("for"), self.block("next"), self.block("for_end"));
        let (enters, size) = self.enters(&looping)?;
        let enters = Leaf::from(enters).vector(self.emit)?;
        let index = IndexSlot::new(self, looping.start, looping.step)?;
        let bits = self.scalar_of(looping.index).bits();
        let looks = self.looks(looping.body, bits <= 32)?;
        self.enter_loop(true, next, exit)?;
        let level = self.levels.len() - 1;
        let slot = self.levels[level].mask;
        let outside = self.mask()?;
        let active = self.emit.and(outside.into(), enters.into())?;
        self.emit.builder.build_store(slot, active)?;
        let any = self.emit.any(active.into_vector_value())?;
        self.emit
            .builder
            .build_conditional_branch(any, head, exit)?;
        self.emit.builder.position_at_end(head);
        let current = index.read(self)?;
        self.define(looping.index, Leaves::from_elem(current, 1));
        self.start_iteration(next)?;
        self.region(looping.body)?;
        self.jump(next)?;
        self.emit.builder.position_at_end(next);
        self.end_iteration(looping.body)?;
        self.look(looks)?;
        self.all_go_on(&looping, &index, (head, exit))?;
        let current = index.read(self)?;
        let distance = self.distance(&looping, current.value(self.emit)?)?;
        let more = self.emit.icmp(IntPredicate::UGT, distance, size)?;
        let active = self.read_mask(slot)?;
        let more = Leaf::from(more).vector(self.emit)?;
        let active = self.emit.and(active.into(), more.into())?;
        self.emit.builder.build_store(slot, active)?;
        index.advance(self, looping.step)?;
        let any = self.emit.any(active.into_vector_value())?;
        self.emit
            .builder
            .build_conditional_branch(any, head, exit)?;
        self.leave_loop(exit, looping.body)
    }

    /// The way back for all iterations but the last ones: if an affine index of 32 bits or less rises
    /// and its last lane has another iteration, all lanes have.
    fn all_go_on(
        &mut self,
        looping: &ForLoop<'ctx>,
        index: &IndexSlot<'ctx>,
        (head, exit): (BasicBlock<'ctx>, BasicBlock<'ctx>),
    ) -> Result<(), BackendError> {
        let (IndexSlot::AffineForm(_, base, stride), Leaf::Uniform(end), Leaf::Uniform(step)) =
            (*index, looping.end, looping.step)
        else {
            return Ok(());
        };
        let bits = self.emit.int_bits(base);
        if looping.direction != Some(true) && looping.signed || bits > 32 || stride < 0 {
            return Ok(());
        }
        let wide = |value| self.emit.resize(value, 64, looping.signed);
        let current = match index.read(self)? {
            Leaf::Uniform(base) | Leaf::Affine { base, .. } => base,
            _ => return Ok(()),
        };
        let reach = stride.saturating_mul(i64::from(self.emit.lanes) - 1);
        let last = self.emit.add(wide(current)?, self.emit.i64(reach).into())?;
        let next = self.emit.add(last, wide(step)?)?;
        let go_on = self.emit.icmp(IntPredicate::SLT, next, wide(end)?)?;
        let (fast, slow) = (self.block("all_go_on"), self.block("some_go_on"));
        self.likely(go_on.into_int_value(), fast, slow)?;
        self.emit.builder.position_at_end(fast);
        index.advance(self, looping.step)?;
        match self.active_lanes()? {
            Some(active) if self.can_leave(looping.body) => {
                let any = self.emit.any(active)?;
                self.emit
                    .builder
                    .build_conditional_branch(any, head, exit)?;
            }
            _ => self.jump(head)?,
        }
        self.emit.builder.position_at_end(slow);
        Ok(())
    }

    fn precedes(
        &self,
        looping: &ForLoop<'ctx>,
        up: bool,
        a: BasicValueEnum<'ctx>,
        b: BasicValueEnum<'ctx>,
    ) -> super::emit::Built<'ctx> {
        let predicate = match (looping.signed, up) {
            (true, true) => IntPredicate::SLT,
            (true, false) => IntPredicate::SGT,
            (false, true) => IntPredicate::ULT,
            (false, false) => IntPredicate::UGT,
        };
        self.emit.icmp(predicate, a, b)
    }

    /// Whether there is a first iteration, and the size of the step as an unsigned number.
    fn enters(
        &self,
        looping: &ForLoop<'ctx>,
    ) -> Result<(BasicValueEnum<'ctx>, BasicValueEnum<'ctx>), BackendError> {
        let start = looping.start.value(self.emit)?;
        let end = looping.end.value(self.emit)?;
        let step = looping.step.value(self.emit)?;
        let zero = self.emit.int_like(0, step);
        match (looping.direction, looping.signed) {
            (Some(true), _) => Ok((self.precedes(looping, true, start, end)?, step)),
            (Some(false), _) => {
                let down = self.precedes(looping, false, start, end)?;
                Ok((down, self.emit.sub(zero, step)?))
            }
            (None, false) => {
                let up = self.precedes(looping, true, start, end)?;
                let moves = self.emit.icmp(IntPredicate::NE, step, zero)?;
                Ok((self.emit.and(up, moves)?, step))
            }
            (None, true) => {
                let rises = self.emit.icmp(IntPredicate::SGT, step, zero)?;
                let falls = self.emit.icmp(IntPredicate::SLT, step, zero)?;
                let up = self
                    .emit
                    .and(rises, self.precedes(looping, true, start, end)?)?;
                let down = self
                    .emit
                    .and(falls, self.precedes(looping, false, start, end)?)?;
                let negated = self.emit.sub(zero, step)?;
                let size = self.emit.select(rises, step, negated)?;
                Ok((self.emit.or(up, down)?, size))
            }
        }
    }

    /// How far the bound is from an index before it, as an unsigned number.
    fn distance(
        &self,
        looping: &ForLoop<'ctx>,
        index: BasicValueEnum<'ctx>,
    ) -> super::emit::Built<'ctx> {
        let end = looping.end.value(self.emit)?;
        let ahead = self.emit.sub(end, index)?;
        if looping.direction == Some(true) || !looping.signed {
            return Ok(ahead);
        }
        let behind = self.emit.sub(index, end)?;
        if looping.direction == Some(false) {
            return Ok(behind);
        }
        let step = looping.step.value(self.emit)?;
        let zero = self.emit.int_like(0, step);
        let rises = self.emit.icmp(IntPredicate::SGT, step, zero)?;
        self.emit.select(rises, ahead, behind)
    }
}

/// Where the index of a loop is kept.
#[derive(Copy, Clone)]
enum IndexSlot<'ctx> {
    /// The base of an affine index.
    AffineForm(PointerValue<'ctx>, BasicValueEnum<'ctx>, i64),
    /// All lanes.
    Lanes(PointerValue<'ctx>, VectorValue<'ctx>),
}

impl<'ctx> IndexSlot<'ctx> {
    fn new(
        warp: &Warp<'_, '_, 'ctx>,
        start: Leaf<'ctx>,
        step: Leaf<'ctx>,
    ) -> Result<IndexSlot<'ctx>, BackendError> {
        let slot = |value: BasicValueEnum<'ctx>| -> Result<PointerValue<'ctx>, BackendError> {
            let slot = warp.entry.slot(warp.emit, value.get_type())?;
            warp.emit.builder.build_store(slot, value)?;
            Ok(slot)
        };
        match (start, step) {
            (Leaf::Affine { base, stride }, Leaf::Uniform(_)) => {
                Ok(IndexSlot::AffineForm(slot(base)?, base, stride))
            }
            (Leaf::Uniform(base), Leaf::Uniform(_)) => {
                Ok(IndexSlot::AffineForm(slot(base)?, base, 0))
            }
            _ => {
                let lanes = start.vector(warp.emit)?;
                Ok(IndexSlot::Lanes(slot(lanes.into())?, lanes))
            }
        }
    }

    /// What is kept, and where.
    fn load(
        &self,
        warp: &Warp<'_, '_, 'ctx>,
    ) -> Result<(BasicValueEnum<'ctx>, PointerValue<'ctx>), BackendError> {
        let (ty, slot) = match *self {
            IndexSlot::AffineForm(slot, base, _) => (base.get_type(), slot),
            IndexSlot::Lanes(slot, lanes) => (lanes.get_type().into(), slot),
        };
        let value = warp.emit.builder.build_load(ty, slot, "index")?;
        Ok((value, slot))
    }

    fn read(&self, warp: &Warp<'_, '_, 'ctx>) -> Result<Leaf<'ctx>, BackendError> {
        let (value, _) = self.load(warp)?;
        Ok(match *self {
            IndexSlot::AffineForm(_, _, 0) => Leaf::Uniform(value),
            IndexSlot::AffineForm(_, _, stride) => Leaf::Affine {
                base: value,
                stride,
            },
            IndexSlot::Lanes(..) => Leaf::from(value),
        })
    }

    fn advance(&self, warp: &Warp<'_, '_, 'ctx>, step: Leaf<'ctx>) -> Result<(), BackendError> {
        let (current, slot) = self.load(warp)?;
        let step = step.value(warp.emit)?;
        let next = warp.emit.add(current, step)?;
        warp.emit.builder.build_store(slot, next)?;
        Ok(())
    }
}

/// The instructions of a block and of those behind it, which are a loop's if the block is its first and what follows the
/// loop is not written yet.
fn instructions_from(head: BasicBlock<'_>) -> u64 {
    let blocks = std::iter::successors(Some(head), |block| block.get_next_basic_block());
    let counts = blocks.map(|block| block.get_instructions().count() as u64);
    counts.sum()
}
