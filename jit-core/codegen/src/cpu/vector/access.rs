//! Loads and stores in all lanes.
//!
//! An address that is the same in all lanes is read once. Addresses of neighbouring elements are
//! one wide access, under the mask unless all lanes are known to be in bounds; the rest is gathered
//! and scattered. Where an address is only affine at times, both are written and a branch chooses. So it is with stores,
//! and with loads of narrow elements, before AVX-512: with the mask and without, where all lanes are active.

use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::types::{BasicTypeEnum, VectorType};
use inkwell::values::{BasicValueEnum, InstructionOpcode, IntValue, PointerValue, VectorValue};

use kiln_ir::{LeafKind, LeafType, Type, Value};

use super::Warp;
use super::emit::Built;
use super::leaf::{Indexed, Leaf, Leaves};
use crate::llvm::error::BackendError;

/// How an address can be accessed.
#[derive(Copy, Clone)]
pub(super) enum Pattern<'ctx> {
    /// One place for all lanes.
    Same(PointerValue<'ctx>),
    /// Neighbouring elements from here on; whether all lanes may be read.
    Row(PointerValue<'ctx>, bool),
    /// One of these, if its condition holds.
    PerhapsRow(Row<'ctx>, Option<Row<'ctx>>),
    /// No pattern.
    Scattered,
}

/// Neighbouring elements at times.
#[derive(Copy, Clone)]
pub(super) struct Row<'ctx> {
    /// The element of lane 0.
    start: PointerValue<'ctx>,
    /// Whether all lanes may be read.
    readable: bool,
    /// When the elements are neighbours.
    when: IntValue<'ctx>,
}

/// Where the parts of a vector's lanes are read.
#[derive(Copy, Clone)]
enum Source<'ctx> {
    /// A constant.
    Constant(VectorValue<'ctx>),
    /// On the stack, with the type of a lane.
    Slot(PointerValue<'ctx>, BasicTypeEnum<'ctx>),
}

impl<'ctx> Warp<'_, '_, 'ctx> {
    pub(super) fn pattern(&self, address: Leaf<'ctx>, bytes: u32) -> Pattern<'ctx> {
        let is_row = |stride: i64| stride == i64::from(bytes);
        match address {
            Leaf::Uniform(at) => Pattern::Same(at.into_pointer_value()),
            Leaf::Affine { base, stride: 0 } => Pattern::Same(base.into_pointer_value()),
            Leaf::Affine { base, stride } if is_row(stride) => {
                Pattern::Row(base.into_pointer_value(), false)
            }
            Leaf::Indexed(Indexed {
                affine: Some(affine),
                ..
            })
            | Leaf::Vector {
                affine: Some(affine),
                ..
            }
            | Leaf::Element { affine, .. }
                if is_row(affine.stride) =>
            {
                let row = Row {
                    start: affine.base.into_pointer_value(),
                    readable: affine.readable,
                    when: affine.when,
                };
                // Narrow elements under a mask are no instruction before AVX-512.
                let edge = affine.part.filter(|_| bytes >= 4).map(|part| Row {
                    start: part.base.into_pointer_value(),
                    readable: false,
                    when: part.when,
                });
                Pattern::PerhapsRow(row, edge)
            }
            _ => Pattern::Scattered,
        }
    }

    /// The address of a leaf of the value at `ptr`.
    fn leaf_address(
        &self,
        ptr: Leaf<'ctx>,
        leaf: &LeafType,
        spread: bool,
    ) -> Result<Leaf<'ctx>, BackendError> {
        if !spread {
            return self.shift(ptr, leaf.offset);
        }
        // Private memory with the lanes of each leaf side by side.
        let lanes = u64::from(self.emit.lanes);
        let address = self.shift(ptr, leaf.offset * lanes)?;
        let stride = i64::from(leaf.bytes());
        match address {
            Leaf::Uniform(base) => Ok(Leaf::Affine { base, stride }),
            other => {
                let steps = self
                    .emit
                    .const_lanes(self.emit.int(64), |l| stride as u64 * u64::from(l));
                let lanes = self.emit.offset(other.value(self.emit)?, steps.into())?;
                Ok(Leaf::from(lanes))
            }
        }
    }

    pub(super) fn load(
        &mut self,
        ptr: Value,
        result: Type,
        volatile: bool,
    ) -> Result<Leaves<'ctx>, BackendError> {
        let address = self.leaf(ptr)?;
        let spread = self.kernel.is_spread(ptr);
        let leaves = self.types().leaves(result);
        if !volatile && !spread && self.is_apart(address, &leaves) {
            return self.load_apart(address, &leaves);
        }
        let mut value = Leaves::new();
        for leaf in leaves {
            let at = self.leaf_address(address, &leaf, spread)?;
            value.push(self.load_leaf(at, leaf, volatile)?);
        }
        Ok(value)
    }

    fn load_leaf(
        &mut self,
        address: Leaf<'ctx>,
        leaf: LeafType,
        volatile: bool,
    ) -> Result<Leaf<'ctx>, BackendError> {
        let bytes = leaf.bytes();
        let scalar = self.emit.leaf_in_memory(leaf);
        let raw = match self.pattern(address, bytes) {
            Pattern::Same(at) => self.emit.load(scalar, at, bytes, volatile)?,
            _ if volatile => self.load_one_by_one(address, scalar, bytes)?,
            Pattern::Row(at, readable) => self.load_row(at, scalar, bytes, readable)?,
            Pattern::PerhapsRow(row, edge) => {
                let next = self.block("loaded");
                let mut loaded = Vec::new();
                for row in [Some(row), edge].into_iter().flatten() {
                    let rest = self.when_row(row, "gather")?;
                    let value = self.load_row(row.start, scalar, bytes, row.readable)?;
                    self.emit.builder.build_unconditional_branch(next)?;
                    loaded.push((value, self.current_block()?));
                    self.emit.builder.position_at_end(rest);
                }
                let value = self.gather_rarely(address, scalar, bytes)?;
                self.emit.builder.build_unconditional_branch(next)?;
                loaded.push((value, self.current_block()?));
                self.emit.builder.position_at_end(next);
                let phi = self.emit.builder.build_phi(value.get_type(), "")?;
                for (value, from) in &loaded {
                    phi.add_incoming(&[(value, *from)]);
                }
                phi.as_basic_value()
            }
            Pattern::Scattered => self.gather(address, scalar, bytes)?,
        };
        self.as_computed(raw, leaf)
    }

    pub(super) fn as_computed(
        &self,
        raw: BasicValueEnum<'ctx>,
        leaf: LeafType,
    ) -> Result<Leaf<'ctx>, BackendError> {
        Ok(Leaf::from(match leaf.kind {
            LeafKind::Scalar(scalar) => self.emit.as_computed(raw, scalar)?,
            LeafKind::Length(scalar) => self.emit.resize(raw, scalar.bits(), false)?,
            LeafKind::Address => raw,
        }))
    }

    /// Goes on where the lanes access a row; gives the block for where they do not.
    fn when_row(&self, row: Row<'ctx>, otherwise: &str) -> Result<BasicBlock<'ctx>, BackendError> {
        let (here, rest) = (self.block("row"), self.block(otherwise));
        self.likely(row.when, here, rest)?;
        self.emit.builder.position_at_end(here);
        Ok(rest)
    }

    fn load_row(
        &self,
        at: PointerValue<'ctx>,
        scalar: BasicTypeEnum<'ctx>,
        bytes: u32,
        readable: bool,
    ) -> Built<'ctx> {
        let ty = self.emit.vector_of(scalar);
        if readable {
            return self.emit.load(ty.into(), at, bytes, false);
        }
        let mask = self.mask()?;
        if self.kernel.has_gathers || bytes >= 4 {
            return self.emit.masked_load(ty, at, bytes, mask);
        }
        // No instruction masks these before AVX-512: LLVM makes a branch a lane of it.
        let slot = self.entry.slot(self.emit, ty.into())?;
        self.by_activity(
            mask,
            || {
                let value = self.emit.load(ty.into(), at, bytes, false)?;
                self.emit.builder.build_store(slot, value)?;
                Ok(())
            },
            || {
                let value = self.emit.masked_load(ty, at, bytes, mask)?;
                self.emit.builder.build_store(slot, value)?;
                Ok(())
            },
        )?;
        Ok(self.emit.builder.build_load(ty, slot, "")?)
    }

    fn gather(&self, address: Leaf<'ctx>, scalar: BasicTypeEnum<'ctx>, bytes: u32) -> Built<'ctx> {
        let mask = self.mask()?;
        let addresses = address.vector(self.emit)?;
        self.emit
            .gather(self.emit.vector_of(scalar), addresses, bytes, mask)
    }

    fn load_one_by_one(
        &mut self,
        address: Leaf<'ctx>,
        scalar: BasicTypeEnum<'ctx>,
        bytes: u32,
    ) -> Built<'ctx> {
        let addresses = address.vector(self.emit)?;
        let ty = self.emit.vector_of(scalar);
        self.value_of_lanes(&[addresses.into()], ty, |warp, lane| {
            let at = lane[0].into_pointer_value();
            warp.emit.load(scalar, at, bytes, true)
        })
    }

    pub(super) fn store(
        &mut self,
        ptr: Value,
        value: Value,
        volatile: bool,
    ) -> Result<(), BackendError> {
        let address = self.leaf(ptr)?;
        let spread = self.kernel.is_spread(ptr);
        let parts = self.get(value)?;
        let leaves = self.types().leaves(self.type_of(value));
        if !volatile && !spread && self.is_apart(address, &leaves) {
            return self.store_apart(address, &parts, &leaves);
        }
        for (leaf, &part) in leaves.iter().zip(&parts) {
            let at = self.leaf_address(address, leaf, spread)?;
            let part = self.to_memory(part, *leaf)?;
            self.store_leaf(at, part, leaf.bytes(), volatile)?;
        }
        Ok(())
    }

    pub(super) fn to_memory(
        &self,
        part: Leaf<'ctx>,
        leaf: LeafType,
    ) -> Result<Leaf<'ctx>, BackendError> {
        let bits = match leaf.kind {
            LeafKind::Length(_) => leaf.bytes() * 8,
            LeafKind::Scalar(_) | LeafKind::Address if leaf.is_bool() => leaf.bytes() * 8,
            LeafKind::Scalar(_) | LeafKind::Address => return Ok(part),
        };
        Ok(Leaf::from(self.emit.resize(
            part.value(self.emit)?,
            bits,
            false,
        )?))
    }

    fn store_leaf(
        &mut self,
        address: Leaf<'ctx>,
        value: Leaf<'ctx>,
        bytes: u32,
        volatile: bool,
    ) -> Result<(), BackendError> {
        match self.pattern(address, bytes) {
            Pattern::Same(at) => {
                let value = self.of_last_lane(value)?;
                self.emit.store(at, value, bytes, volatile)
            }
            _ if volatile => {
                let (at, value) = (address.vector(self.emit)?, value.vector(self.emit)?);
                self.each_lane(&[at.into(), value.into()], |warp, lane| {
                    let at = lane[0].into_pointer_value();
                    warp.emit.store(at, lane[1], bytes, true)
                })
            }
            Pattern::Row(at, _) => self.store_row(at, value, bytes),
            Pattern::PerhapsRow(row, edge) => {
                let next = self.block("stored");
                for row in [Some(row), edge].into_iter().flatten() {
                    let rest = self.when_row(row, "scatter")?;
                    self.store_row(row.start, value, bytes)?;
                    self.emit.builder.build_unconditional_branch(next)?;
                    self.emit.builder.position_at_end(rest);
                }
                self.scatter_rarely(address, value, bytes)?;
                self.emit.builder.build_unconditional_branch(next)?;
                self.emit.builder.position_at_end(next);
                Ok(())
            }
            Pattern::Scattered => self.scatter(address, value, bytes),
        }
    }

    fn store_row(
        &self,
        at: PointerValue<'ctx>,
        value: Leaf<'ctx>,
        bytes: u32,
    ) -> Result<(), BackendError> {
        let (value, mask) = (value.vector(self.emit)?, self.mask()?);
        if self.kernel.has_gathers {
            return self.emit.masked_store(value, at, bytes, mask);
        }
        // Before AVX-512 a masked store takes an AMD CPU several times as long as one of all lanes.
        self.by_activity(
            mask,
            || self.emit.store(at, value.into(), bytes, false),
            || self.emit.masked_store(value, at, bytes, mask),
        )
    }

    /// Does one thing where all lanes are active, which is likely, and another where some are not.
    fn by_activity(
        &self,
        mask: VectorValue<'ctx>,
        all: impl FnOnce() -> Result<(), BackendError>,
        some: impl FnOnce() -> Result<(), BackendError>,
    ) -> Result<(), BackendError> {
        let (full, part, next) = (
            self.block("all_lanes"),
            self.block("some_lanes"),
            self.block("lanes_done"),
        );
        let is_full = self.are_all_active(mask)?;
        self.likely(is_full, full, part)?;
        self.emit.builder.position_at_end(full);
        all()?;
        self.emit.builder.build_unconditional_branch(next)?;
        self.emit.builder.position_at_end(part);
        some()?;
        self.emit.builder.build_unconditional_branch(next)?;
        self.emit.builder.position_at_end(next);
        Ok(())
    }

    fn are_all_active(&self, mask: VectorValue<'ctx>) -> Result<IntValue<'ctx>, BackendError> {
        let bits = self.emit.mask_bits(mask)?;
        let full = bits.get_type().const_all_ones();
        let all = self.emit.icmp(IntPredicate::EQ, bits.into(), full.into())?;
        Ok(all.into_int_value())
    }

    fn scatter(
        &self,
        address: Leaf<'ctx>,
        value: Leaf<'ctx>,
        bytes: u32,
    ) -> Result<(), BackendError> {
        let mask = self.mask()?;
        let addresses = address.vector(self.emit)?;
        let value = value.vector(self.emit)?;
        self.emit.scatter(value, addresses, bytes, mask)
    }

    /// Where all lanes store to one place, the last one's value stays: threads run in order.
    fn of_last_lane(&self, value: Leaf<'ctx>) -> Built<'ctx> {
        if let Leaf::Uniform(value) = value {
            return Ok(value);
        }
        let bits: BasicValueEnum<'ctx> = self.emit.mask_as_word(self.mask()?)?.into();
        let no_poison = self.emit.int(1).const_zero().into();
        let above = self
            .emit
            .value("llvm.ctlz", &[bits.get_type()], &[bits, no_poison])?;
        let last = u64::from(self.emit.mask_word()?.get_bit_width() - 1);
        let last = self.emit.mask_word()?.const_int(last, false);
        let lane = self.emit.sub(last.into(), above)?;
        self.emit
            .lane(value.vector(self.emit)?, lane.into_int_value())
    }

    /// Does something for each active lane in order, on the lane's part of each operand.
    pub(super) fn each_lane(
        &mut self,
        operands: &[BasicValueEnum<'ctx>],
        mut act: impl FnMut(&mut Self, &[BasicValueEnum<'ctx>]) -> Result<(), BackendError>,
    ) -> Result<(), BackendError> {
        let slots = self.lane_slots(operands)?;
        self.lane_loop(|warp, lane| {
            let parts = warp.parts_in_lane(&slots, lane)?;
            act(warp, &parts)
        })
    }

    /// [`Self::each_lane`] for what gives each lane a value: a vector, zero in inactive lanes.
    pub(super) fn value_of_lanes(
        &mut self,
        operands: &[BasicValueEnum<'ctx>],
        result: VectorType<'ctx>,
        mut act: impl FnMut(&mut Self, &[BasicValueEnum<'ctx>]) -> Built<'ctx>,
    ) -> Built<'ctx> {
        let slots = self.lane_slots(operands)?;
        self.value_of_lane_loop(result, |warp, lane| {
            let parts = warp.parts_in_lane(&slots, lane)?;
            act(warp, &parts)
        })
    }

    /// Vectors on the stack, each with the type of a lane.
    fn lane_slots(
        &self,
        operands: &[BasicValueEnum<'ctx>],
    ) -> Result<Vec<(PointerValue<'ctx>, BasicTypeEnum<'ctx>)>, BackendError> {
        let mut slots = Vec::new();
        for &operand in operands {
            let slot = self.entry.slot(self.emit, operand.get_type())?;
            self.emit.builder.build_store(slot, operand)?;
            slots.push((slot, lane_type(operand.into_vector_value())));
        }
        Ok(slots)
    }

    fn parts_in_lane(
        &self,
        slots: &[(PointerValue<'ctx>, BasicTypeEnum<'ctx>)],
        lane: BasicValueEnum<'ctx>,
    ) -> Result<Vec<BasicValueEnum<'ctx>>, BackendError> {
        let mut parts = Vec::new();
        for &(slot, ty) in slots {
            let at = self.lane_slot(slot, ty, lane)?;
            parts.push(self.emit.builder.build_load(ty, at, "")?);
        }
        Ok(parts)
    }

    /// [`Self::value_of_lanes`] if there is a type of vector for it; else the values are dropped.
    pub(super) fn each_lane_giving(
        &mut self,
        result: Option<VectorType<'ctx>>,
        operands: &[BasicValueEnum<'ctx>],
        mut act: impl FnMut(&mut Self, &[BasicValueEnum<'ctx>]) -> Built<'ctx>,
    ) -> Result<Option<BasicValueEnum<'ctx>>, BackendError> {
        if let Some(ty) = result {
            return self.value_of_lanes(operands, ty, act).map(Some);
        }
        self.each_lane(operands, |warp, lane| act(warp, lane).map(drop))?;
        Ok(None)
    }

    /// [`Self::each_lane_giving`] for what takes few instructions: in a row when all lanes are active.
    ///
    /// Parts are read from the stack, and the loads are volatile so that LLVM does not take them out of registers: an AMD CPU
    /// took ten times as long for additions in memory at addresses that came out of vector registers.
    pub(super) fn each_lane_unrolled(
        &mut self,
        result: Option<VectorType<'ctx>>,
        operands: &[BasicValueEnum<'ctx>],
        mut act: impl FnMut(&mut Self, &[BasicValueEnum<'ctx>]) -> Built<'ctx>,
    ) -> Result<Option<BasicValueEnum<'ctx>>, BackendError> {
        let (row, some, next) = (
            self.block("all_lanes"),
            self.block("some_lanes"),
            self.block("lanes_done"),
        );
        let all = self.are_all_active(self.mask()?)?;
        self.likely(all, row, some)?;
        self.emit.builder.position_at_end(row);
        let mut in_a_row = result.map(|ty| ty.const_zero());
        let sources = self.lane_sources(operands)?;
        for lane in 0..self.emit.lanes {
            let mut parts = Vec::new();
            for &source in &sources {
                parts.push(self.part_of(source, lane)?);
            }
            let value = act(self, &parts)?;
            let lane = self.emit.i32(lane);
            if let Some(vector) = in_a_row {
                let builder = &self.emit.builder;
                in_a_row = Some(builder.build_insert_element(vector, value, lane, "")?);
            }
        }
        let row_end = self.current_block()?;
        self.emit.builder.build_unconditional_branch(next)?;
        self.emit.builder.position_at_end(some);
        let one_by_one = self.each_lane_giving(result, operands, act)?;
        let some_end = self.current_block()?;
        self.emit.builder.build_unconditional_branch(next)?;
        self.emit.builder.position_at_end(next);
        let (Some(a), Some(b)) = (in_a_row, one_by_one) else {
            return Ok(None);
        };
        let phi = self.emit.builder.build_phi(a.get_type(), "")?;
        phi.add_incoming(&[(&a, row_end), (&b, some_end)]);
        Ok(Some(phi.as_basic_value()))
    }

    /// Where the parts of lanes are that come in a row: constants are where they are.
    fn lane_sources(
        &self,
        operands: &[BasicValueEnum<'ctx>],
    ) -> Result<Vec<Source<'ctx>>, BackendError> {
        let source = |&operand: &BasicValueEnum<'ctx>| {
            let vector = operand.into_vector_value();
            if vector.is_const() {
                return Ok(Source::Constant(vector));
            }
            let slot = self.entry.slot(self.emit, operand.get_type())?;
            self.emit.builder.build_store(slot, operand)?;
            Ok(Source::Slot(slot, lane_type(vector)))
        };
        operands.iter().map(source).collect()
    }

    /// The part of a lane whose number is known.
    fn part_of(&self, source: Source<'ctx>, lane: u32) -> Built<'ctx> {
        match source {
            Source::Constant(vector) => self.emit.lane(vector, self.emit.i32(lane)),
            Source::Slot(slot, ty) => {
                let lane = self.emit.i64(i64::from(lane));
                let at = self.lane_slot(slot, ty, lane.into())?;
                self.emit.load(ty, at, 1, true)
            }
        }
    }

    /// A value for each active lane in order, given its number as 64 bits: a vector, zero in inactive
    /// lanes.
    pub(super) fn value_of_lane_loop(
        &mut self,
        result: VectorType<'ctx>,
        mut act: impl FnMut(&mut Self, BasicValueEnum<'ctx>) -> Built<'ctx>,
    ) -> Built<'ctx> {
        let slot = self.entry.slot(self.emit, result.into())?;
        self.emit.builder.build_store(slot, result.const_zero())?;
        self.lane_loop(|warp, lane| {
            let value = act(warp, lane)?;
            let at = warp.lane_slot(slot, value.get_type(), lane)?;
            warp.emit.builder.build_store(at, value)?;
            Ok(())
        })?;
        Ok(self.emit.builder.build_load(result, slot, "")?)
    }

    /// Does something for each active lane in order, given its number as 64 bits.
    pub(super) fn lane_loop(
        &mut self,
        mut act: impl FnMut(&mut Self, BasicValueEnum<'ctx>) -> Result<(), BackendError>,
    ) -> Result<(), BackendError> {
        let bits: BasicValueEnum<'ctx> = self.emit.mask_as_word(self.mask()?)?.into();
        let (body, next) = (self.block("lane"), self.block("lanes_done"));
        let before = self.current_block()?;
        // With its test at the end, as LLVM would turn it: that costs LLVM time that grows with the
        // square of the number of such loops.
        let none = self.emit.mask_word()?.const_zero();
        let any = self.emit.icmp(IntPredicate::NE, bits, none.into())?;
        self.emit
            .builder
            .build_conditional_branch(any.into_int_value(), body, next)?;
        self.emit.builder.position_at_end(body);
        let left = self
            .emit
            .builder
            .build_phi(self.emit.mask_word()?, "left")?;
        let left_bits = left.as_basic_value();
        let no_poison = self.emit.int(1).const_zero().into();
        let lane = self.emit.value(
            "llvm.cttz",
            &[left_bits.get_type()],
            &[left_bits, no_poison],
        )?;
        let lane = self.emit.resize(lane, 64, false)?;
        act(self, lane)?;
        let one = self.emit.mask_word()?.const_int(1, false);
        let less = self.emit.sub(left_bits, one.into())?;
        let rest = self.emit.and(left_bits, less)?;
        let end = self.current_block()?;
        let more = self.emit.icmp(IntPredicate::NE, rest, none.into())?;
        self.emit
            .builder
            .build_conditional_branch(more.into_int_value(), body, next)?;
        left.add_incoming(&[(&bits, before), (&rest, end)]);
        self.emit.builder.position_at_end(next);
        Ok(())
    }

    /// Reads elements one by one: little code, for where it is hardly ever run.
    fn gather_rarely(
        &mut self,
        address: Leaf<'ctx>,
        scalar: BasicTypeEnum<'ctx>,
        bytes: u32,
    ) -> Built<'ctx> {
        let Leaf::Element { element, .. } = address else {
            return self.gather(address, scalar, bytes);
        };
        let ty = self.emit.vector_of(scalar);
        self.value_of_lane_loop(ty, |warp, lane| {
            let at = element.address_of(warp.emit, lane)?;
            warp.emit.load(scalar, at, bytes, false)
        })
    }

    /// Writes elements one by one.
    fn scatter_rarely(
        &mut self,
        address: Leaf<'ctx>,
        value: Leaf<'ctx>,
        bytes: u32,
    ) -> Result<(), BackendError> {
        let Leaf::Element { element, .. } = address else {
            return self.scatter(address, value, bytes);
        };
        let values = value.vector(self.emit)?;
        let ty = lane_type(values);
        let slot = self.entry.slot(self.emit, values.get_type().into())?;
        self.emit.builder.build_store(slot, values)?;
        self.lane_loop(|warp, lane| {
            let at = element.address_of(warp.emit, lane)?;
            let value = warp.lane_slot(slot, ty, lane)?;
            let value = warp.emit.builder.build_load(ty, value, "")?;
            warp.emit.store(at, value, bytes, false)
        })
    }

    /// The place of a lane in a vector on the stack.
    pub(super) fn lane_slot(
        &self,
        slot: PointerValue<'ctx>,
        ty: BasicTypeEnum<'ctx>,
        lane: BasicValueEnum<'ctx>,
    ) -> Result<PointerValue<'ctx>, BackendError> {
        let bits = match ty {
            BasicTypeEnum::IntType(t) => t.get_bit_width(),
            BasicTypeEnum::FloatType(t) => t.get_bit_width(),
            _ => 64,
        };
        let bytes = self.emit.i64(i64::from(bits / 8)).into();
        let offset = self.emit.binary(InstructionOpcode::Mul, lane, bytes)?;
        Ok(self.emit.offset(slot.into(), offset)?.into_pointer_value())
    }
}

fn lane_type<'ctx>(vector: VectorValue<'ctx>) -> BasicTypeEnum<'ctx> {
    vector.get_type().get_element_type()
}
