//! Matches and reductions, and lanes that go group by group.
//!
//! Groups are found from their lowest lanes: what the first lane that is left has in common with
//! others is done for all of these, until no lane is left.

use inkwell::IntPredicate;
use inkwell::types::VectorType;
use inkwell::values::{PointerValue, VectorValue};

use kiln_ir::legal::Proved as _;
use kiln_ir::{Reduction, Scalar, Type, Value};

use super::Warp;
use super::leaf::{Leaf, scalar_type};
use crate::llvm::error::BackendError;

impl<'ctx> Warp<'_, '_, 'ctx> {
    /// The values of all active lanes as one, if LLVM has that for their type.
    pub(super) fn reduce(
        &self,
        how: Reduction,
        scalar: Scalar,
        value: Value,
    ) -> Result<Option<Leaf<'ctx>>, BackendError> {
        let Some((function, identity)) = reduction(how, scalar) else {
            return Ok(None);
        };
        let lanes = self.leaf(value)?.vector(self.emit)?;
        let identity = self.emit.int_like(identity.into(), lanes.into());
        let lanes = self
            .emit
            .select(self.mask()?.into(), lanes.into(), identity)?;
        let all = self.emit.value(function, &[lanes.get_type()], &[lanes])?;
        Ok(Some(Leaf::Uniform(all)))
    }

    /// The active lanes if they have the same bits, else none.
    pub(super) fn match_all(&self, value: Value) -> Result<Leaf<'ctx>, BackendError> {
        let here = self.lanes_here()?;
        if let Leaf::Uniform(_) = self.leaf(value)? {
            return Ok(Leaf::Uniform(here.into()));
        }
        let lanes = self.lane_bits(value)?;
        let first = self.emit.lane(lanes, self.first_lane()?)?;
        let alike = self.emit.icmp(IntPredicate::EQ, lanes.into(), first)?;
        let differs = self.emit.and(self.emit.not(alike)?, self.mask()?.into())?;
        let any = self.emit.any(differs.into_vector_value())?;
        let none = self.emit.i32(0).into();
        Ok(Leaf::Uniform(self.emit.select(
            any.into(),
            none,
            here.into(),
        )?))
    }

    /// For each lane, the lanes of its member mask with the same bits. It takes a round for each
    /// value that there is.
    pub(super) fn match_any(
        &mut self,
        mask: Value,
        value: Value,
    ) -> Result<Leaf<'ctx>, BackendError> {
        if let Leaf::Uniform(_) = self.leaf(value)? {
            return Ok(Leaf::from(self.members(mask)?));
        }
        let lanes = self.lane_bits(value)?;
        let numbers = self.emit.int(32).vec_type(self.emit.lanes);
        let slot = self.zero_slot(numbers)?;
        self.each_leader(lanes, |warp, same| {
            let bits = warp.number(same)?;
            warp.blend(slot, same, Leaf::Uniform(bits.into()))
        })?;
        let alike = self.emit.builder.build_load(numbers, slot, "")?;
        Ok(Leaf::from(match self.leaf(mask)? {
            Leaf::Uniform(_) => alike,
            masks => self.emit.and(alike, masks.vector(self.emit)?.into())?,
        }))
    }

    /// Executes an operation for the lanes of each member mask by themselves.
    pub(super) fn each_group(
        &mut self,
        masks: VectorValue<'ctx>,
        result: Type,
        act: impl Fn(&mut Self) -> Result<Option<Leaf<'ctx>>, BackendError>,
    ) -> Result<Option<Leaf<'ctx>>, BackendError> {
        let exit = self.level_exit();
        let group = |warp: &mut Self, lanes| {
            warp.push_level(lanes, exit)?;
            let leaf = act(warp);
            warp.levels.pop();
            leaf
        };
        let Some(scalar) = result.as_scalar() else {
            self.each_leader(masks, |warp, lanes| group(warp, lanes).map(drop))?;
            return Ok(None);
        };
        let ty = self.emit.vector_of(scalar_type(self.emit, scalar));
        let slot = self.zero_slot(ty)?;
        self.each_leader(masks, |warp, lanes| {
            let leaf = group(warp, lanes)?;
            warp.blend(slot, lanes, leaf.proved("the result of a row"))
        })?;
        let lanes = self.emit.builder.build_load(ty, slot, "")?;
        Ok(Some(Leaf::from(lanes)))
    }

    /// Takes the first active lane that is left and does something for all that have its key, until
    /// none is left. Keys are integers of whole bytes.
    fn each_leader(
        &mut self,
        keys: VectorValue<'ctx>,
        mut act: impl FnMut(&mut Self, VectorValue<'ctx>) -> Result<(), BackendError>,
    ) -> Result<(), BackendError> {
        let emit = self.emit;
        let slot = self.entry.slot(emit, keys.get_type().into())?;
        emit.builder.build_store(slot, keys)?;
        let left = self.entry.slot(emit, emit.int(32).into())?;
        emit.builder.build_store(left, self.number(self.mask()?)?)?;
        let (head, next) = (self.block("leader"), self.block("no_leader"));
        self.jump(head)?;
        emit.builder.position_at_end(head);
        let bits = emit.builder.build_load(emit.int(32), left, "")?;
        let leader = emit.lowest_bit(bits.into_int_value())?;
        let leader = emit.resize(leader.into(), 64, false)?;
        let ty = keys.get_type().get_element_type();
        let key = emit
            .builder
            .build_load(ty, self.lane_slot(slot, ty, leader)?, "")?;
        let same = emit.icmp(IntPredicate::EQ, keys.into(), key)?;
        let same = emit.and(same, self.mask()?.into())?.into_vector_value();
        act(self, same)?;
        let done = self.number(same)?;
        let rest = emit.and(bits, emit.not(done.into())?)?;
        emit.builder.build_store(left, rest)?;
        let more = emit.icmp(IntPredicate::NE, rest, emit.i32(0).into())?;
        emit.builder
            .build_conditional_branch(more.into_int_value(), head, next)?;
        emit.builder.position_at_end(next);
        Ok(())
    }

    /// A place on the stack for a vector, zero at first: what no lane writes must not be undefined.
    fn zero_slot(&self, ty: VectorType<'ctx>) -> Result<PointerValue<'ctx>, BackendError> {
        let slot = self.entry.slot(self.emit, ty.into())?;
        self.emit.builder.build_store(slot, ty.const_zero())?;
        Ok(slot)
    }

    /// Writes some lanes of a vector on the stack.
    fn blend(
        &self,
        slot: PointerValue<'ctx>,
        mask: VectorValue<'ctx>,
        leaf: Leaf<'ctx>,
    ) -> Result<(), BackendError> {
        let lanes = leaf.vector(self.emit)?;
        let old = self.emit.builder.build_load(lanes.get_type(), slot, "")?;
        let new = self.emit.select(mask.into(), lanes.into(), old)?;
        self.emit.builder.build_store(slot, new)?;
        Ok(())
    }

    /// A value's bits, as integers of whole bytes.
    pub(super) fn lane_bits(&self, value: Value) -> Result<VectorValue<'ctx>, BackendError> {
        let scalar = self.scalar_of(value);
        let lanes = self.leaf(value)?.vector(self.emit)?.into();
        let bits = self.emit.to_bits(lanes, scalar)?;
        Ok(bits.into_vector_value())
    }
}

/// The LLVM intrinsic of a reduction, and the value that changes no result.
fn reduction(how: Reduction, scalar: Scalar) -> Option<(&'static str, u32)> {
    if !scalar.is_int() || scalar.bits() != 32 {
        return None;
    }
    let signed = scalar.is_signed_int();
    Some(match (how, signed) {
        (Reduction::Add, _) => ("llvm.vector.reduce.add", 0),
        (Reduction::Min, true) => ("llvm.vector.reduce.smin", i32::MAX as u32),
        (Reduction::Min, false) => ("llvm.vector.reduce.umin", u32::MAX),
        (Reduction::Max, true) => ("llvm.vector.reduce.smax", i32::MIN as u32),
        (Reduction::Max, false) => ("llvm.vector.reduce.umax", 0),
        (Reduction::And, _) => ("llvm.vector.reduce.and", u32::MAX),
        (Reduction::Or, _) => ("llvm.vector.reduce.or", 0),
        (Reduction::Xor, _) => ("llvm.vector.reduce.xor", 0),
    })
}
