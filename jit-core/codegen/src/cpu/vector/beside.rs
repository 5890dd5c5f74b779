//! Blocks that are run side by side: warp by warp, the first warp of each, then the second of each.
//!
//! A block that is narrow and high reads a few elements of many rows, and the next one those behind them. One after the other,
//! they come back to each row's lines late, and no prefetcher sees more of a row than the block's width: a step of Jacobi's iteration
//! in blocks of 32 x 8, written in C, took 3.6 times what it took row by row (`benches/RESULTS.md`). Side by side, blocks go along rows.
//!
//! Threads of different blocks may come in any order, save where they learn of each other: by atomics, volatile accesses and fences.
//! A kernel that has any is left as it is, and so is one whose threads do much each, as what a block's warps have in common would no
//! longer stay close by, and one with barriers or shared memory: what lives across barriers is in memory, and that of several blocks
//! costs more than their order gains (1.3 times the time of the same step by tiles). Of a kernel that is one of two as a whole, as
//! checks make it, those blocks of a row are run side by side that take the same version.

use inkwell::IntPredicate;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValueEnum, InstructionOpcode, IntValue};

use kiln_ir::legal::Legal;
use kiln_ir::{Constant, Effects, Function, InstData, Module, Read, Region, Source, Value};

use super::Warp;
use super::block::BlockWriter;
use super::emit::{Built, unexpected};
use crate::llvm::error::BackendError;
use crate::simt::{BlockShape, defining_inst};

/// Threads of a row of blocks that are run side by side, at most.
const ROW: u32 = 256;

/// Accesses of a thread, those of loops counted as often as they turn, at most.
const ACCESSES: u64 = 64;

/// How many blocks are run side by side, for a kernel and a shape of block; 1 if none are.
pub(crate) fn blocks_beside(legal: &Legal, block: [u32; 3], lanes: u32) -> u32 {
    let module = legal.module();
    let [x, y, z] = block;
    let fits = lanes > 1 && x.is_multiple_of(lanes) && u64::from(y) * u64::from(z) > 1;
    if !fits || ROW / x < 2 || meets_others(module) {
        return 1;
    }
    let kernel = legal.kernel();
    let accesses = accesses(module, kernel, kernel.body);
    if accesses.is_none_or(|count| count > ACCESSES) {
        return 1;
    }
    ROW / x
}

/// Whether the threads of a block meet or share memory, or one can find out how far those of other blocks are.
fn meets_others(module: &Module) -> bool {
    let of = |data: &InstData| {
        let facts = data.facts(&module.intrinsics);
        let by_memory = match facts.source {
            Source::Memory { read, .. } => read != Read::Plain,
            Source::Execution => true,
            Source::Row(row) => row.effects == Effects::Memory || row.waits_for_grid(),
            Source::None
            | Source::Operands
            | Source::Variable(_)
            | Source::Own
            | Source::Callee => false,
        };
        by_memory
            || facts.orders.is_some()
            || matches!(
                data,
                InstData::Store { volatile: true, .. }
                    | InstData::AtomicStore { .. }
                    | InstData::Print { .. }
                    | InstData::SharedAddr(_)
                    | InstData::DynamicShared
            )
    };
    let mut functions = module.functions.values();
    functions.any(|function| function.insts.values().any(|node| of(&node.data)))
}

/// The accesses of a thread in a region; `None` where a loop turns nobody knows how often.
fn accesses(module: &Module, function: &Function, region: Region) -> Option<u64> {
    let mut count = 0u64;
    for &inst in &function.regions[region].insts {
        let data = &function.insts[inst].data;
        let turns = match *data {
            InstData::For {
                start, end, step, ..
            } => turns(function, [start, end, step])?,
            InstData::Loop { .. } => return None,
            _ => 1,
        };
        let mut inner = 0u64;
        for region in data.regions() {
            inner = inner.saturating_add(accesses(module, function, region)?);
        }
        if let InstData::Call { callee, .. } = *data {
            let callee = &module.functions[callee];
            inner = accesses(module, callee, callee.body)?;
        }
        let own = data.loaded().is_some() || data.stored().is_some();
        count = count.saturating_add(u64::from(own));
        count = count.saturating_add(inner.saturating_mul(turns));
    }
    Some(count)
}

/// How often a loop turns whose bounds are constants.
fn turns(function: &Function, bounds: [Value; 3]) -> Option<u64> {
    let number = |value| match function.constant(value) {
        Some(Constant::Int(number)) => Some(number),
        Some(Constant::Zero) => Some(0),
        _ => None,
    };
    let [start, end, step] = bounds.map(number);
    let (distance, step) = (end? - start?, step?);
    let turns = match step {
        0 => 0,
        _ if (distance > 0) == (step > 0) => distance.unsigned_abs().div_ceil(step.unsigned_abs()),
        _ => 0,
    };
    u64::try_from(turns).ok()
}

impl<'ctx> BlockWriter<'_, '_, 'ctx> {
    /// How many blocks come next side by side: as many as may be, as are left to run, and as are left of the row.
    pub(super) fn count_beside(
        &self,
        left: BasicValueEnum<'ctx>,
    ) -> Result<IntValue<'ctx>, BackendError> {
        let emit = self.emit;
        let row = emit.sub(self.entry.grid[0].into(), self.entry.block_index[0].into())?;
        let most = emit.i64(self.plan.block.beside.into());
        let mut count = emit.resize(row, 64, false)?;
        for other in [left, most.into()] {
            count = emit.value("llvm.umin", &[count.get_type()], &[count, other])?;
        }
        Ok(emit.resize(count, 32, false)?.into_int_value())
    }

    /// How many blocks in a row agree with the first about a condition, which is put where it is kept.
    pub(super) fn agreeing(&mut self, cond: Value) -> Result<IntValue<'ctx>, BackendError> {
        let emit = self.emit;
        let int: BasicTypeEnum<'ctx> = emit.int(32).into();
        let one: BasicValueEnum<'ctx> = emit.i32(1).into();
        let first = self.computed(cond)?;
        if let Some(&[kept]) = self.scalars.get(&cond).map(Vec::as_slice) {
            emit.builder.build_store(kept, first)?;
        }
        let slot = self.slot(one)?;
        let names = ["agree", "another", "agrees", "agreed"];
        let [head, body, next, end] = names.map(|name| self.block(name));
        emit.builder.build_unconditional_branch(head)?;
        emit.builder.position_at_end(head);
        let count = self.read(int, slot)?;
        let more = emit.icmp(IntPredicate::ULT, count, self.beside.into())?;
        let more = more.into_int_value();
        emit.builder.build_conditional_branch(more, body, end)?;
        emit.builder.position_at_end(body);
        let first_index = self.entry.block_index[0];
        let index = emit.add(first_index.into(), count)?;
        self.entry.block_index[0] = index.into_int_value();
        let other = self.computed(cond)?;
        self.entry.block_index[0] = first_index;
        let same = emit.icmp(IntPredicate::EQ, first, other)?.into_int_value();
        emit.builder.build_conditional_branch(same, next, end)?;
        emit.builder.position_at_end(next);
        emit.builder.build_store(slot, emit.add(count, one)?)?;
        emit.builder.build_unconditional_branch(head)?;
        emit.builder.position_at_end(end);
        Ok(self.read(int, slot)?.into_int_value())
    }

    /// A value of a block, computed of what the launch hands over and where the block is.
    fn computed(&self, value: Value) -> Built<'ctx> {
        let mut warp = self.warp(self.emit.i32(0), self.emit.i32(0));
        self.compute(&mut warp, value)?;
        warp.leaf(value)?.uniform()
    }

    fn compute(&self, warp: &mut Warp<'_, '_, 'ctx>, value: Value) -> Result<(), BackendError> {
        let function = &self.plan.flat.function;
        if warp.has(value) {
            return Ok(());
        }
        let inst = defining_inst(function, value);
        let inst = inst.ok_or_else(|| unexpected("a value of the block that is not there"))?;
        let mut operands = Vec::new();
        let data = &function.insts[inst].data;
        data.for_each_operand(|operand| operands.push(operand));
        for operand in operands {
            self.compute(warp, operand)?;
        }
        warp.inst(inst)
    }

    /// Writes something for each warp of blocks side by side, row by row of threads: `act` is given the number of the warp among those
    /// of all, and the linear index of its first thread in its block.
    pub(super) fn each_warp_beside(
        &mut self,
        count: IntValue<'ctx>,
        mut act: impl FnMut(&mut Self, IntValue<'ctx>, IntValue<'ctx>) -> Result<(), BackendError>,
    ) -> Result<(), BackendError> {
        let (
            emit,
            BlockShape {
                threads,
                lanes,
                beside,
            },
        ) = (self.emit, self.plan.block);
        let [x, y, z] = threads;
        let of_row = x / lanes;
        let int: BasicTypeEnum<'ctx> = emit.int(32).into();
        let constant = |number: u32| -> BasicValueEnum<'ctx> { emit.i32(number).into() };
        let across = emit.mul(count.into(), constant(of_row))?;
        let (row_slot, slot) = (self.slot(constant(0))?, self.slot(constant(0))?);
        let names = ["row", "each_warp", "row_end", "warps_end"];
        let [row_head, head, row_end, end] = names.map(|name| self.block(name));
        emit.builder.build_unconditional_branch(row_head)?;
        emit.builder.position_at_end(row_head);
        emit.builder.build_store(slot, constant(0))?;
        emit.builder.build_unconditional_branch(head)?;
        emit.builder.position_at_end(head);
        let (row, place) = (self.read(int, row_slot)?, self.read(int, slot)?);
        let block = emit.binary(InstructionOpcode::UDiv, place, constant(of_row))?;
        let warp = emit.binary(InstructionOpcode::URem, place, constant(of_row))?;
        let first = emit.mul(row, constant(x))?;
        let first = emit.add(first, emit.mul(warp, constant(lanes))?)?;
        let number = emit.mul(row, constant(of_row * beside))?;
        let number = emit.add(number, place)?.into_int_value();
        let first_index = self.entry.block_index[0];
        let index = emit.add(first_index.into(), block)?;
        self.entry.block_index[0] = index.into_int_value();
        self.entry.beside = Some(block.into_int_value());
        act(self, number, first.into_int_value())?;
        self.entry.block_index[0] = first_index;
        self.entry.beside = None;
        for (slot, start, next, done) in [
            (slot, head, row_end, across),
            (row_slot, row_head, end, constant(y * z)),
        ] {
            let after = emit.add(self.read(int, slot)?, constant(1))?;
            emit.builder.build_store(slot, after)?;
            let more = emit.icmp(IntPredicate::ULT, after, done)?.into_int_value();
            emit.builder.build_conditional_branch(more, start, next)?;
            emit.builder.position_at_end(next);
        }
        Ok(())
    }
}
