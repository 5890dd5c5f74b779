//! Segments of a block: the loop over warps, and what each warp brings in and takes out.

use inkwell::types::BasicTypeEnum;
use inkwell::values::{IntValue, PointerValue};

use kiln_ir::{LeafType, Uniformity, Value, Var};

use super::block::{BlockVar, BlockWriter, slot_type};
use super::emit::Built;
use super::flow::Level;
use super::leaf::{Leaf, Leaves};
use super::warp::Warp;
use crate::llvm::error::BackendError;
use crate::simt::SegmentId;

impl<'m, 'ctx> BlockWriter<'_, 'm, 'ctx> {
    /// Runs segments, one warp after the other.
    pub(super) fn run(&mut self, ids: &[SegmentId]) -> Result<(), BackendError> {
        let touched: Vec<Var> = ids
            .iter()
            .flat_map(|&id| self.plan.segments.segments[id].vars.clone())
            .collect();
        self.copy_vars(&touched, |var| (&var.before, &var.after))?;
        let ids = ids.to_vec();
        if ids
            .iter()
            .all(|&id| self.plan.segments.segments[id].is_uniform)
        {
            self.run_once(&ids)?;
            return self.copy_vars(&touched, |var| (&var.after, &var.before));
        }
        self.each_warp(|writer, warp, first| writer.run_warp(&ids, warp, first))?;
        self.copy_vars(&touched, |var| (&var.after, &var.before))
    }

    fn copy_vars(
        &self,
        vars: &[Var],
        sides: impl for<'s> Fn(
            &'s BlockVar<'ctx>,
        ) -> (&'s Vec<PointerValue<'ctx>>, &'s Vec<PointerValue<'ctx>>),
    ) -> Result<(), BackendError> {
        for var in vars.iter().filter_map(|var| self.vars.get(var)) {
            let (from, to) = sides(var);
            for (&from, &to) in from.iter().zip(to) {
                let value = self.read(slot_type(from)?, from)?;
                self.emit.builder.build_store(to, value)?;
            }
        }
        Ok(())
    }

    fn run_warp(
        &self,
        ids: &[SegmentId],
        index: IntValue<'ctx>,
        first: IntValue<'ctx>,
    ) -> Result<(), BackendError> {
        let (body, end, next) = (
            self.block("segment"),
            self.block("segment_end"),
            self.block("warp_end"),
        );
        let of = |id: &SegmentId| &self.plan.segments.segments[*id];
        let all_there = ids.iter().all(|id| of(id).all_there);
        let mask = match self.plan.arena.live.filter(|_| !all_there) {
            Some(offset) => {
                let mask = self.read_live(offset, index)?;
                let any = self.emit.any(mask)?;
                self.emit
                    .builder
                    .build_conditional_branch(any, body, next)?;
                mask
            }
            None => {
                let mask = self.initial_mask(first)?;
                self.emit.builder.build_unconditional_branch(body)?;
                mask
            }
        };
        self.emit.builder.position_at_end(body);
        let mut warp = self.warp(index, first);
        let mask_slot = self.slot(mask.into())?;
        // A warp without threads left has nothing to take out, as what it holds is of no use to the
        // others; and were its variables brought together from each place where threads may end, code
        // would grow with the number of variables times that of places.
        warp.levels.push(Level {
            mask: mask_slot,
            exit: next,
        });
        for &id in ids {
            self.bring_in(&mut warp, id)?;
        }
        for &id in ids {
            self.segment_body(&mut warp, id)?;
        }
        warp.jump(end)?;
        self.emit.builder.position_at_end(end);
        for &id in ids {
            self.take_out(&warp, id)?;
        }
        self.emit.builder.build_unconditional_branch(next)?;
        self.emit.builder.position_at_end(next);
        Ok(())
    }

    /// What gives the same in all threads and does nothing else is done once for the block.
    fn run_once(&self, ids: &[SegmentId]) -> Result<(), BackendError> {
        let zero = self.emit.i32(0);
        let mut warp = self.warp(zero, zero);
        for &id in ids {
            self.bring_in(&mut warp, id)?;
            self.segment_body(&mut warp, id)?;
            self.take_out(&warp, id)?;
        }
        Ok(())
    }

    pub(super) fn segment_body(
        &self,
        warp: &mut Warp<'_, 'm, 'ctx>,
        id: SegmentId,
    ) -> Result<(), BackendError> {
        for &inst in &self.plan.segments.segments[id].insts {
            if warp.has_left() {
                break;
            }
            warp.inst(inst)?;
            let result = self.plan.flat.function.insts[inst].result;
            if let Some(result) = result.filter(|_| !warp.has_left())
                && self.plan.segments.is_kept(result)
            {
                self.keep(warp, result)?;
            }
        }
        Ok(())
    }

    /// Puts a value where other segments find it.
    fn keep(&self, warp: &Warp<'_, 'm, 'ctx>, value: Value) -> Result<(), BackendError> {
        // It has been put there before the blocks began.
        if self.plan.agreed == Some(value) {
            return Ok(());
        }
        let wide = warp.get(value)?;
        if let Some(slots) = self.scalars.get(&value) {
            for (leaf, &slot) in wide.iter().zip(slots) {
                self.emit.builder.build_store(slot, leaf.uniform()?)?;
            }
            return Ok(());
        }
        let uniformity = self.plan.uniformity.value(value);
        let leaves = self.plan.leaves(self.plan.flat.function.type_of(value));
        let offsets = &self.plan.arena.values[&value];
        for ((&leaf, ty), &offset) in wide.iter().zip(leaves).zip(offsets) {
            let at = self.place(warp, ty, uniformity, offset)?;
            self.write_place(at, ty, uniformity, leaf)?;
        }
        Ok(())
    }

    /// Where a warp keeps a leaf.
    fn place(
        &self,
        warp: &Warp<'_, 'm, 'ctx>,
        ty: LeafType,
        uniformity: Uniformity,
        offset: u64,
    ) -> Result<PointerValue<'ctx>, BackendError> {
        let start = self.emit.offset_const(self.entry.kept, offset)?;
        warp.of_this_warp(start, self.plan.slot_bytes(ty, uniformity))
    }

    fn write_place(
        &self,
        at: PointerValue<'ctx>,
        ty: LeafType,
        uniformity: Uniformity,
        leaf: Leaf<'ctx>,
    ) -> Result<(), BackendError> {
        let value = if uniformity == Uniformity::Lane {
            leaf.vector(self.emit)?.into()
        } else {
            leaf.uniform()?
        };
        let value = if self.emit.int_bits(value) == 1 {
            self.emit.resize(value, 8, false)?
        } else {
            value
        };
        self.emit.store(at, value, ty.bytes().min(4), false)
    }

    fn read_place(
        &self,
        at: PointerValue<'ctx>,
        ty: LeafType,
        uniformity: Uniformity,
    ) -> Built<'ctx> {
        let is_bool = ty.scalar() == Some(kiln_ir::Scalar::Bool);
        let scalar: BasicTypeEnum<'ctx> = if is_bool {
            self.emit.int(8).into()
        } else {
            self.emit.leaf_type(ty)
        };
        let whole = if uniformity == Uniformity::Lane {
            self.emit.vector_of(scalar).into()
        } else {
            scalar
        };
        let value = self.emit.load(whole, at, ty.bytes().min(4), false)?;
        if is_bool {
            return self.emit.resize(value, 1, false);
        }
        Ok(value)
    }

    /// Before a segment: values and variables of other segments.
    pub(super) fn bring_in(
        &self,
        warp: &mut Warp<'_, 'm, 'ctx>,
        id: SegmentId,
    ) -> Result<(), BackendError> {
        let plan = self.plan;
        let segment = &plan.segments.segments[id];
        let function = &plan.flat.function;
        for &value in &segment.needs {
            let uniformity = plan.uniformity.value(value);
            if uniformity == Uniformity::Block {
                self.rematerialize(warp, value)?;
                continue;
            }
            let mut wide = Leaves::new();
            let leaves = plan.leaves(function.type_of(value));
            for (ty, &offset) in leaves.into_iter().zip(&plan.arena.values[&value]) {
                let at = self.place(warp, ty, uniformity, offset)?;
                wide.push(Leaf::from(self.read_place(at, ty, uniformity)?));
            }
            warp.define(value, wide);
        }
        for &value in &segment.again {
            self.rematerialize(warp, value)?;
        }
        let vars = segment.vars.iter().map(|&var| (var, true));
        let own = segment.own.iter().map(|&var| (var, false));
        for (var, is_kept) in vars.chain(own) {
            if !warp.vars.contains_key(&var) {
                let slots = self.var_slots(warp, var, is_kept)?;
                warp.vars.insert(var, slots);
            }
        }
        Ok(())
    }

    /// Slots for a variable in a segment: its kept value, or zero.
    fn var_slots(
        &self,
        warp: &Warp<'_, 'm, 'ctx>,
        var: Var,
        is_kept: bool,
    ) -> Result<Vec<PointerValue<'ctx>>, BackendError> {
        let plan = self.plan;
        let uniformity = plan.uniformity.var(var);
        let leaves = plan.leaves(plan.flat.function.vars[var].ty);
        let mut slots = Vec::new();
        for (i, ty) in leaves.into_iter().enumerate() {
            let scalar = self.emit.leaf_type(ty);
            let value = if is_kept && uniformity == Uniformity::Block {
                self.read(scalar, self.vars[&var].before[i])?
            } else if is_kept {
                let at = self.place(warp, ty, uniformity, plan.arena.vars[&var][i])?;
                self.read_place(at, ty, uniformity)?
            } else if uniformity == Uniformity::Lane {
                self.emit.vector_of(scalar).const_zero().into()
            } else {
                scalar.const_zero()
            };
            slots.push(self.slot(value)?);
        }
        Ok(slots)
    }

    /// After a segment: the variables that live on.
    fn take_out(&self, warp: &Warp<'_, 'm, 'ctx>, id: SegmentId) -> Result<(), BackendError> {
        let plan = self.plan;
        for &var in &plan.segments.segments[id].vars {
            let uniformity = plan.uniformity.var(var);
            let leaves = plan.leaves(plan.flat.function.vars[var].ty);
            for (i, ty) in leaves.into_iter().enumerate() {
                let scalar = self.emit.leaf_type(ty);
                let whole = if uniformity == Uniformity::Lane {
                    self.emit.vector_of(scalar).into()
                } else {
                    scalar
                };
                let value = self.read(whole, warp.vars[&var][i])?;
                if uniformity == Uniformity::Block {
                    let slot = self.vars[&var].after[i];
                    self.emit.builder.build_store(slot, value)?;
                    continue;
                }
                let at = self.place(warp, ty, uniformity, plan.arena.vars[&var][i])?;
                self.write_place(at, ty, uniformity, Leaf::from(value))?;
            }
        }
        Ok(())
    }
}
