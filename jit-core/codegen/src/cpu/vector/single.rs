//! Branches that one lane takes, as in `if thread_idx.x == 0`: they are scalar code.
//!
//! An index that grows by one from lane to lane equals a number that is the same in all lanes in one
//! lane at most. Where only that lane is active, its part of an operand is all that counts: operands
//! are read as if they were the same in all lanes, and so are what is computed from them, the
//! addresses of accesses, and what is stored. The mask of the branch is as it always is.

use inkwell::values::{BasicValueEnum, InstructionOpcode};

use kiln_ir::{BinaryOp, CompareOp, InstData, Region, Source, Value, ValueDef};

use super::Warp;
use super::emit::Built;
use super::leaf::{Leaf, Leaves};
use crate::llvm::error::BackendError;

impl<'ctx> Warp<'_, '_, 'ctx> {
    /// The lane that alone can take a branch, of 64 bits, if the condition names one and the branch
    /// asks no other lane for anything.
    pub(super) fn single_lane(
        &self,
        cond: Value,
        region: Region,
    ) -> Result<Option<BasicValueEnum<'ctx>>, BackendError> {
        if self.emit.lanes == 1 || self.asks_other_lanes(region) {
            return Ok(None);
        }
        self.named_lane(cond)
    }

    fn named_lane(&self, cond: Value) -> Result<Option<BasicValueEnum<'ctx>>, BackendError> {
        let function = self.function();
        let ValueDef::Inst(inst) = function.values[cond].def else {
            return Ok(None);
        };
        match function.insts[inst].data {
            InstData::Binary {
                op: BinaryOp::And,
                args: [a, b],
            } => match self.named_lane(a)? {
                None => self.named_lane(b),
                lane => Ok(lane),
            },
            // The operands may have been of use before a barrier only.
            InstData::Compare {
                op: CompareOp::Eq,
                args: [a, b],
            } if self.has(a) && self.has(b) => match (self.leaf(a)?, self.leaf(b)?) {
                (Leaf::Affine { base, stride: 1 }, Leaf::Uniform(value))
                | (Leaf::Uniform(value), Leaf::Affine { base, stride: 1 })
                    if base.is_int_value() =>
                {
                    let lane = self.emit.sub(value, base)?;
                    self.emit.resize(lane, 64, false).map(Some)
                }
                _ => Ok(None),
            },
            _ => Ok(None),
        }
    }

    fn asks_other_lanes(&self, region: Region) -> bool {
        let function = self.function();
        function.regions[region].insts.iter().any(|&inst| {
            let data = &function.insts[inst].data;
            let facts = data.facts(&self.kernel.module.intrinsics);
            let asks = match facts.source {
                Source::Row(row) => row.is_of_warp(),
                _ => facts.meets,
            };
            asks || data.regions().iter().any(|&r| self.asks_other_lanes(r))
        })
    }

    /// A value as one lane has it.
    pub(super) fn in_lane(
        &self,
        value: Leaves<'ctx>,
        lane: BasicValueEnum<'ctx>,
    ) -> Result<Leaves<'ctx>, BackendError> {
        let leaves = value.into_iter();
        leaves
            .map(|leaf| self.leaf_in_lane(leaf, lane).map(Leaf::Uniform))
            .collect()
    }

    pub(super) fn leaf_in_lane(&self, leaf: Leaf<'ctx>, lane: BasicValueEnum<'ctx>) -> Built<'ctx> {
        match leaf {
            Leaf::Uniform(value) => Ok(value),
            Leaf::Affine { base, stride } if base.is_pointer_value() => {
                let stride = self.emit.i64(stride).into();
                let bytes = self.emit.binary(InstructionOpcode::Mul, lane, stride)?;
                self.emit.offset(base, bytes)
            }
            Leaf::Affine { base, stride } => {
                let lane = self.emit.resize(lane, self.emit.int_bits(base), false)?;
                let stride = self.emit.int_like(stride as u64, lane);
                self.emit.add(base, self.emit.mul(lane, stride)?)
            }
            Leaf::Vector { lanes, .. } => self.emit.lane(lanes, lane.into_int_value()),
            Leaf::Element { element, .. } => Ok(element.address_of(self.emit, lane)?.into()),
            Leaf::Indexed(indexed) => {
                let index = self.emit.lane(indexed.index, lane.into_int_value())?;
                indexed.address(self.emit, index)
            }
        }
    }
}
