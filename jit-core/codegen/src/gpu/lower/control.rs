//! Regions as basic blocks: `if`, loops, `break`, `continue`, `return` and calls.
//!
//! A `for` with step 1 (or -1) becomes the loop LLVM knows best: compare, body, add without wrap.
//! With another step the index must not pass the end of its type, so the loop is entered through a
//! guard and left at the bottom, and the addition that follows can not wrap either: a known step has its turns counted
//! before the loop, which is what LLVM unrolls by; with an unknown one, by which it would take long to divide,
//! the loop is left when the distance to the bound is at most the step.

use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::values::{InstructionValue, IntValue, PhiValue};

use kiln_ir::legal::jumped_to;
use kiln_ir::{FuncId, Inst, Region, Type, Value};

use super::FunctionLowering;
use super::meeting_loops::hint_of_meetings;
use super::own_arrays::keeps_arrays_in_memory;
use super::value::Lowered;
use crate::llvm::ask::{call_arguments, current_block};
use crate::llvm::bindings::UnrollHint;
use crate::llvm::error::BackendError;
use crate::llvm::unrolled::hint_unroll;

/// Where `break` and `continue` of a loop go.
#[derive(Copy, Clone)]
pub(super) struct LoopBlocks<'ctx> {
    exit: BasicBlock<'ctx>,
    next: BasicBlock<'ctx>,
}

/// The operands of a `for`.
#[derive(Copy, Clone)]
pub(super) struct ForBounds {
    pub(super) start: Value,
    pub(super) end: Value,
    pub(super) step: Value,
}

/// A step by its sign, when it is a constant.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Step {
    Zero,
    One,
    MinusOne,
    Positive,
    Negative,
    Unknown,
}

/// A `for` being lowered, its bounds as LLVM values.
struct ForLoop<'ctx> {
    index: Value,
    start: IntValue<'ctx>,
    end: IntValue<'ctx>,
    step: IntValue<'ctx>,
    signed: bool,
    body: Region,
    inst: Inst,
}

impl<'ctx> FunctionLowering<'_, 'ctx> {
    pub(super) fn lower_region(&mut self, region: Region) -> Result<(), BackendError> {
        self.left = false;
        let function = self.function;
        for &inst in &function.regions[region].insts {
            if self.left {
                break;
            }
            self.lower_inst(inst)?;
        }
        Ok(())
    }

    /// Goes to `block` unless the region was left already.
    fn fall_through(&self, block: BasicBlock<'ctx>) -> Result<(), BackendError> {
        if !self.left {
            self.builder().build_unconditional_branch(block)?;
        }
        Ok(())
    }

    fn go_on_in(&mut self, block: BasicBlock<'ctx>) {
        self.builder().position_at_end(block);
        self.left = false;
    }

    pub(super) fn lower_if(
        &mut self,
        cond: Value,
        then_region: Region,
        else_region: Option<Region>,
    ) -> Result<(), BackendError> {
        let cond = self.one(cond).into_int_value();
        let then_block = self.append_block("then");
        let else_block = else_region.map(|_| self.append_block("else"));
        let after = self.append_block("after");
        self.builder()
            .build_conditional_branch(cond, then_block, else_block.unwrap_or(after))?;
        self.builder().position_at_end(then_block);
        self.lower_region(then_region)?;
        self.fall_through(after)?;
        let mut reached = !self.left || else_block.is_none();
        if let (Some(region), Some(block)) = (else_region, else_block) {
            self.builder().position_at_end(block);
            self.lower_region(region)?;
            self.fall_through(after)?;
            reached |= !self.left;
        }
        self.go_on_in(after);
        if !reached {
            self.builder().build_unreachable()?;
            self.left = true;
        }
        Ok(())
    }

    pub(super) fn lower_loop(&mut self, body: Region) -> Result<(), BackendError> {
        let head = self.append_block("loop");
        let exit = self.append_block("loop_end");
        self.builder().build_unconditional_branch(head)?;
        self.builder().position_at_end(head);
        self.loops.push(LoopBlocks { exit, next: head });
        self.lower_region(body)?;
        self.loops.pop();
        self.fall_through(head)?;
        self.go_on_in(exit);
        Ok(())
    }

    pub(super) fn lower_break(&mut self, depth: u32) -> Result<(), BackendError> {
        let target = jumped_to(&self.loops, depth).exit;
        self.leave_to(target)
    }

    pub(super) fn lower_continue(&mut self, depth: u32) -> Result<(), BackendError> {
        let target = jumped_to(&self.loops, depth).next;
        self.leave_to(target)
    }

    fn leave_to(&mut self, target: BasicBlock<'ctx>) -> Result<(), BackendError> {
        self.builder().build_unconditional_branch(target)?;
        self.left = true;
        Ok(())
    }

    pub(super) fn lower_return(&mut self, value: Option<Value>) -> Result<(), BackendError> {
        match value {
            None => self.builder().build_return(None)?,
            Some(value) => {
                let ty = self.type_of(value);
                let lowered = self.get(value);
                let result = match lowered {
                    Lowered::One(result) => result,
                    Lowered::Slice(..) => self.to_memory(lowered, ty)?,
                };
                self.builder().build_return(Some(&result))?
            }
        };
        self.left = true;
        Ok(())
    }

    pub(super) fn lower_call(
        &mut self,
        callee: FuncId,
        args: &[Value],
        result: Type,
    ) -> Result<Option<Lowered<'ctx>>, BackendError> {
        let mut flat = Vec::new();
        for &arg in args {
            self.get(arg).flatten(&mut flat);
        }
        let function = self.module.function_value(callee);
        let call = self
            .builder()
            .build_call(function, &call_arguments(&flat), "")?;
        match call.try_as_basic_value().basic() {
            Some(value) if self.types().table().is_slice(result) => {
                self.value_from_memory(value, result).map(Some)
            }
            value => Ok(value.map(Lowered::One)),
        }
    }

    pub(super) fn lower_for(
        &mut self,
        inst: Inst,
        index: Value,
        bounds: ForBounds,
        body: Region,
    ) -> Result<(), BackendError> {
        let looping = ForLoop {
            index,
            start: self.one(bounds.start).into_int_value(),
            end: self.one(bounds.end).into_int_value(),
            step: self.one(bounds.step).into_int_value(),
            signed: self.is_signed(index),
            body,
            inst,
        };
        let step = match self.known_int(bounds.step) {
            None => Step::Unknown,
            Some(0) => Step::Zero,
            Some(1) => Step::One,
            Some(-1) => Step::MinusOne,
            Some(n) if n > 0 => Step::Positive,
            Some(_) => Step::Negative,
        };
        match step {
            Step::Zero => Ok(()),
            Step::One | Step::MinusOne => self.for_by_one(&looping, step == Step::One),
            Step::Positive | Step::Negative => self.for_by_turns(&looping, step),
            Step::Unknown => self.for_by_distance(&looping, step),
        }
    }

    /// Says at the branch back to a loop's start how it is to be unrolled.
    fn hint_unroll(&self, back: InstructionValue<'_>, looping: Inst) {
        let processor = self.module.dialect.processor();
        let unasked = match keeps_arrays_in_memory(self.function, looping) {
            true => Some(UnrollHint::Full),
            false => hint_of_meetings(processor, self.function, looping),
        };
        hint_unroll(self.context(), back, (self.function, looping), unasked);
    }

    /// `while index < end { body; index += 1 }`, or the same downwards: the index stays between
    /// the bounds, so the addition does not wrap.
    fn for_by_one(&mut self, looping: &ForLoop<'ctx>, up: bool) -> Result<(), BackendError> {
        let [head, body, next, exit] =
            ["for", "for_body", "for_next", "for_end"].map(|name| self.append_block(name));
        let before = current_block(self.builder())?;
        self.builder().build_unconditional_branch(head)?;
        self.builder().position_at_end(head);
        let index = self.index_phi(looping, before)?;
        let value = index.as_basic_value().into_int_value();
        let inside = self.precedes(looping.signed, up, value, looping.end)?;
        self.builder()
            .build_conditional_branch(inside, body, exit)?;
        self.for_body(looping, value, body, LoopBlocks { exit, next })?;
        self.builder().position_at_end(next);
        let stepped = self.stepped(looping, value)?;
        let back = self.builder().build_unconditional_branch(head)?;
        self.hint_unroll(back, looping.inst);
        index.add_incoming(&[(&stepped, next)]);
        self.go_on_in(exit);
        Ok(())
    }

    /// `if start < end { do { body; if distance(index, end) <= |step| break; index += step } }`
    fn for_by_distance(&mut self, looping: &ForLoop<'ctx>, step: Step) -> Result<(), BackendError> {
        let [body, next, again, exit] =
            ["for_body", "for_next", "for_again", "for_end"].map(|name| self.append_block(name));
        let (enters, size) = self.for_entry(looping, step)?;
        let before = current_block(self.builder())?;
        self.builder()
            .build_conditional_branch(enters, body, exit)?;
        self.builder().position_at_end(body);
        let index = self.index_phi(looping, before)?;
        let value = index.as_basic_value().into_int_value();
        self.for_body(looping, value, body, LoopBlocks { exit, next })?;
        self.builder().position_at_end(next);
        let distance = self.distance(looping, step, value)?;
        let more = self
            .builder()
            .build_int_compare(IntPredicate::UGT, distance, size, "")?;
        self.builder().build_conditional_branch(more, again, exit)?;
        self.builder().position_at_end(again);
        let stepped = self.stepped(looping, value)?;
        let back = self.builder().build_unconditional_branch(body)?;
        self.hint_unroll(back, looping.inst);
        index.add_incoming(&[(&stepped, again)]);
        self.go_on_in(exit);
        Ok(())
    }

    /// `if start < end { left = (end - start - 1) / step; do { body; index += step } while left-- != 0 }`
    ///
    /// What is added to the index of the last turn may wrap, which nobody sees. It is added at the bottom, and not behind it:
    /// LLVM would copy the whole body to have the loop end in the test.
    fn for_by_turns(&mut self, looping: &ForLoop<'ctx>, step: Step) -> Result<(), BackendError> {
        let [turns, body, next, exit] =
            ["for", "for_body", "for_next", "for_end"].map(|name| self.append_block(name));
        let (enters, size) = self.for_entry(looping, step)?;
        self.builder()
            .build_conditional_branch(enters, turns, exit)?;
        self.builder().position_at_end(turns);
        let ty = looping.start.get_type();
        let (zero, one) = (ty.const_zero(), ty.const_int(1, false));
        let distance = self.distance(looping, step, looping.start)?;
        let last = self.builder().build_int_sub(distance, one, "")?;
        let others = (self.builder()).build_int_unsigned_div(last, size, "turns")?;
        self.builder().build_unconditional_branch(body)?;
        self.builder().position_at_end(body);
        let index = self.index_phi(looping, turns)?;
        let left = self.builder().build_phi(ty, "left")?;
        left.add_incoming(&[(&others, turns)]);
        let value = index.as_basic_value().into_int_value();
        self.for_body(looping, value, body, LoopBlocks { exit, next })?;
        self.builder().position_at_end(next);
        let turns = left.as_basic_value().into_int_value();
        let stepped = self.stepped(looping, value)?;
        let fewer = self.builder().build_int_nuw_sub(turns, one, "fewer")?;
        let more = (self.builder()).build_int_compare(IntPredicate::NE, turns, zero, "")?;
        let back = (self.builder()).build_conditional_branch(more, body, exit)?;
        self.hint_unroll(back, looping.inst);
        index.add_incoming(&[(&stepped, next)]);
        left.add_incoming(&[(&fewer, next)]);
        self.go_on_in(exit);
        Ok(())
    }

    fn index_phi(
        &self,
        looping: &ForLoop<'ctx>,
        before: BasicBlock<'ctx>,
    ) -> Result<PhiValue<'ctx>, BackendError> {
        let index = self
            .builder()
            .build_phi(looping.start.get_type(), "index")?;
        index.add_incoming(&[(&looping.start, before)]);
        Ok(index)
    }

    fn for_body(
        &mut self,
        looping: &ForLoop<'ctx>,
        index: IntValue<'ctx>,
        block: BasicBlock<'ctx>,
        blocks: LoopBlocks<'ctx>,
    ) -> Result<(), BackendError> {
        self.define(looping.index, Lowered::One(index.into()));
        self.builder().position_at_end(block);
        self.loops.push(blocks);
        self.lower_region(looping.body)?;
        self.loops.pop();
        self.fall_through(blocks.next)
    }

    /// Whether `a` comes before `b` in the direction of the loop.
    fn precedes(
        &self,
        signed: bool,
        up: bool,
        a: IntValue<'ctx>,
        b: IntValue<'ctx>,
    ) -> Result<IntValue<'ctx>, BackendError> {
        let predicate = match (signed, up) {
            (true, true) => IntPredicate::SLT,
            (true, false) => IntPredicate::SGT,
            (false, true) => IntPredicate::ULT,
            (false, false) => IntPredicate::UGT,
        };
        Ok(self.builder().build_int_compare(predicate, a, b, "")?)
    }

    /// The next index, which is known to exist.
    fn stepped(
        &self,
        looping: &ForLoop<'ctx>,
        index: IntValue<'ctx>,
    ) -> Result<IntValue<'ctx>, BackendError> {
        Ok(if looping.signed {
            self.builder()
                .build_int_nsw_add(index, looping.step, "next")?
        } else {
            self.builder()
                .build_int_nuw_add(index, looping.step, "next")?
        })
    }

    /// Whether there is a first iteration, and the size of the step as an unsigned number.
    fn for_entry(
        &self,
        looping: &ForLoop<'ctx>,
        step: Step,
    ) -> Result<(IntValue<'ctx>, IntValue<'ctx>), BackendError> {
        let builder = self.builder();
        let ForLoop {
            start, end, signed, ..
        } = *looping;
        let zero = looping.step.get_type().const_zero();
        let up = self.precedes(signed, true, start, end)?;
        let unknown_sign = step == Step::Unknown && signed;
        if step == Step::Positive {
            return Ok((up, looping.step));
        }
        if !unknown_sign && step == Step::Unknown {
            let moves = builder.build_int_compare(IntPredicate::NE, looping.step, zero, "")?;
            return Ok((builder.build_and(up, moves, "")?, looping.step));
        }
        let down = self.precedes(signed, false, start, end)?;
        let negated = builder.build_int_neg(looping.step, "")?;
        if step == Step::Negative {
            return Ok((down, negated));
        }
        let rises = builder.build_int_compare(IntPredicate::SGT, looping.step, zero, "")?;
        let falls = builder.build_int_compare(IntPredicate::SLT, looping.step, zero, "")?;
        let up = builder.build_and(rises, up, "")?;
        let down = builder.build_and(falls, down, "")?;
        let size = builder.build_select(rises, looping.step, negated, "")?;
        Ok((builder.build_or(up, down, "")?, size.into_int_value()))
    }

    /// How far the bound is from an index before it, as an unsigned number.
    fn distance(
        &self,
        looping: &ForLoop<'ctx>,
        step: Step,
        index: IntValue<'ctx>,
    ) -> Result<IntValue<'ctx>, BackendError> {
        let builder = self.builder();
        let ahead = builder.build_int_sub(looping.end, index, "")?;
        if step == Step::Positive || !looping.signed {
            return Ok(ahead);
        }
        let behind = builder.build_int_sub(index, looping.end, "")?;
        if step == Step::Negative {
            return Ok(behind);
        }
        let zero = looping.step.get_type().const_zero();
        let rises = builder.build_int_compare(IntPredicate::SGT, looping.step, zero, "")?;
        Ok(builder
            .build_select(rises, ahead, behind, "")?
            .into_int_value())
    }
}
