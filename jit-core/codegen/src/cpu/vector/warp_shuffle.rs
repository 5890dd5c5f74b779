//! Shuffles: each lane gets the value of another.
//!
//! Lane and width are constants nearly always, and then the order of the lanes is one: the row's
//! meaning gives it here, and a shuffle is one `shufflevector`. A distance that is the same in all
//! lanes is made of its bits, so that it becomes that, too, where LLVM finds the distance by
//! unrolling a loop. Anything else is a gather from the stack.
//!
//! A lane whose source is beyond its segment or takes no part keeps its own value.

use inkwell::IntPredicate;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValueEnum, InstructionOpcode, VectorValue};

use kiln_ir::{IntrinsicDef, Lanes, Meaning, Scalar, Shuffle, Value, WARP_LANES, WarpArgs};

use super::Warp;
use super::emit::Built;
use super::leaf::Leaf;
use crate::llvm::error::BackendError;

/// The lane at a distance from a lane, around the warp's ends; none for a lane by its number.
fn lane_at_distance(kind: Shuffle, lane: u32, distance: u32) -> Option<u32> {
    let any = match kind {
        Shuffle::Idx => return None,
        Shuffle::Up => lane.wrapping_sub(distance),
        Shuffle::Down => lane + distance,
        Shuffle::Xor => lane ^ distance,
    };
    Some(any % WARP_LANES as u32)
}

/// Bits of the number of a lane.
const LANE_BITS: u32 = WARP_LANES.ilog2();

impl<'ctx> Warp<'_, '_, 'ctx> {
    /// A shuffle of arguments mask, value, source and width.
    pub(super) fn shuffle(
        &mut self,
        def: &IntrinsicDef,
        kind: Shuffle,
        [mask, value, source, width]: [Value; 4],
    ) -> Result<Leaf<'ctx>, BackendError> {
        let (value, source, width) = (self.leaf(value)?, self.leaf(source)?, self.leaf(width)?);
        if let Leaf::Uniform(_) = value {
            return Ok(value);
        }
        let own = value.vector(self.emit)?;
        let (sources, theirs) = match constant_sources(def, source, width) {
            Some(lanes) => {
                let order = |lane: u32| lanes[lane as usize];
                let sources = self.emit.const_lanes(self.emit.int(32), order);
                let theirs = self.emit.permute(own, |lane| order(lane) as u32)?;
                (sources, theirs)
            }
            None => {
                let sources = self.sources(kind, source, width)?;
                (sources, self.picked(kind, own, sources, source)?)
            }
        };
        let there = self.take_part(mask, sources)?;
        Ok(Leaf::from(self.emit.select(
            there,
            theirs.into(),
            own.into(),
        )?))
    }

    /// The lane that each lane reads, whether or not it takes part: the row's meaning, in vectors.
    fn sources(
        &self,
        kind: Shuffle,
        source: Leaf<'ctx>,
        width: Leaf<'ctx>,
    ) -> Result<VectorValue<'ctx>, BackendError> {
        let emit = self.emit;
        let constant = |n: u32| -> BasicValueEnum<'ctx> { emit.i32(n).into() };
        let last_lane = constant(WARP_LANES as u32 - 1);
        let lane = emit.const_lanes(emit.int(32), u64::from).into();
        let from = emit.and(source.value(emit)?, last_lane)?;
        let outside = emit.sub(constant(WARP_LANES as u32), width.value(emit)?)?;
        let outside = emit.and(outside, last_lane)?;
        let inside = emit.binary(InstructionOpcode::Xor, outside, last_lane)?;
        let first = emit.and(lane, outside)?;
        let last = emit.or(first, inside)?;
        let (read, within) = match kind {
            Shuffle::Idx => {
                let read = emit.or(first, emit.and(from, inside)?)?;
                return Ok(read.into_vector_value());
            }
            Shuffle::Up => {
                let read = emit.sub(lane, from)?;
                (read, emit.icmp(IntPredicate::SGE, read, first)?)
            }
            Shuffle::Down => {
                let read = emit.add(lane, from)?;
                (read, emit.icmp(IntPredicate::ULE, read, last)?)
            }
            Shuffle::Xor => {
                let read = emit.binary(InstructionOpcode::Xor, lane, from)?;
                (read, emit.icmp(IntPredicate::ULE, read, last)?)
            }
        };
        Ok(emit.select(within, read, lane)?.into_vector_value())
    }

    /// Whether the lane that each lane reads executes the operation with it.
    fn take_part(&self, mask: Value, sources: VectorValue<'ctx>) -> Built<'ctx> {
        let members = self.members(mask)?;
        let bits = self
            .emit
            .binary(InstructionOpcode::LShr, members, sources.into())?;
        self.emit.resize(bits, 1, false)
    }

    /// The value of the lane that each lane reads.
    fn picked(
        &self,
        kind: Shuffle,
        own: VectorValue<'ctx>,
        sources: VectorValue<'ctx>,
        source: Leaf<'ctx>,
    ) -> Result<VectorValue<'ctx>, BackendError> {
        match source {
            Leaf::Uniform(distance) if kind != Shuffle::Idx => {
                let lane = self.emit.const_lanes(self.emit.int(32), u64::from);
                let stays = self
                    .emit
                    .icmp(IntPredicate::EQ, sources.into(), lane.into())?;
                let moved = self.at_distance(kind, own, distance)?;
                let picked = self.emit.select(stays, own.into(), moved.into())?;
                Ok(picked.into_vector_value())
            }
            _ => self.gathered(own, sources),
        }
    }

    /// The value of the lane at a distance that is the same for all: step by step for its bits.
    fn at_distance(
        &self,
        kind: Shuffle,
        own: VectorValue<'ctx>,
        distance: BasicValueEnum<'ctx>,
    ) -> Result<VectorValue<'ctx>, BackendError> {
        let mut lanes = own;
        for bit in (0..LANE_BITS).rev() {
            let step = |lane| lane_at_distance(kind, lane, 1 << bit).unwrap_or(lane);
            let further = self.emit.permute(lanes, step)?;
            let set = self.emit.and(distance, self.emit.i32(1 << bit).into())?;
            let goes = self
                .emit
                .icmp(IntPredicate::NE, set, self.emit.i32(0).into())?;
            lanes = self
                .emit
                .select(goes, further.into(), lanes.into())?
                .into_vector_value();
        }
        Ok(lanes)
    }

    /// The value of any lane for each lane. What has fewer than 32 bits goes in 32, as processors
    /// gather no less.
    fn gathered(
        &self,
        own: VectorValue<'ctx>,
        sources: VectorValue<'ctx>,
    ) -> Result<VectorValue<'ctx>, BackendError> {
        let bits = self.emit.int_bits(own.into());
        let small = (1..32).contains(&bits);
        let wide = match small {
            true => self.emit.resize(own.into(), 32, false)?.into_vector_value(),
            false => own,
        };
        let bytes = match wide.get_type().get_element_type() {
            BasicTypeEnum::FloatType(t) => t.get_bit_width() / 8,
            BasicTypeEnum::IntType(t) => t.get_bit_width() / 8,
            _ => 8,
        };
        let slot = self.entry.slot(self.emit, wide.get_type().into())?;
        self.emit.builder.build_store(slot, wide)?;
        let offset = self.emit.resize(sources.into(), 64, false)?;
        let offset = self
            .emit
            .mul(offset, self.emit.int_like(bytes.into(), offset))?;
        let at = self.emit.offset(slot.into(), offset)?.into_vector_value();
        let all = self.emit.const_lanes(self.emit.int(1), |_| 1);
        let lanes = self.emit.gather(wide.get_type(), at, bytes, all)?;
        let lanes = match small {
            true => self.emit.resize(lanes, bits, false)?,
            false => lanes,
        };
        Ok(lanes.into_vector_value())
    }
}

/// The lane that each lane reads if all take part, where operands are constants: from the meaning
/// itself, applied to the lanes' numbers.
fn constant_sources(def: &IntrinsicDef, source: Leaf<'_>, width: Leaf<'_>) -> Option<Lanes> {
    let Meaning::Warp(meaning) = def.meaning else {
        return None;
    };
    let everywhere = |value| [value; WARP_LANES];
    let args = [
        everywhere(u32::MAX.into()),
        std::array::from_fn(|lane| lane as u64),
        everywhere(constant(source)?),
        everywhere(constant(width)?),
    ];
    let warp = WarpArgs {
        lanes: u32::MAX,
        args: &args,
    };
    Some(meaning(Scalar::U32, &warp))
}

fn constant(leaf: Leaf<'_>) -> Option<u64> {
    match leaf {
        Leaf::Uniform(BasicValueEnum::IntValue(value)) => value.get_zero_extended_constant(),
        _ => None,
    }
}
