//! Where a thread is, and what the lanes of a warp do together: a warp is one half of a wave.

use inkwell::IntPredicate;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValueEnum, IntValue};

use kiln_ir::{CompareOp, Known, Ordering, Scalar, Scope, Shuffle, Vote};

use super::dialect::{Amd, extent};
use super::members::{matched, reduced};
use crate::gpu::lower::{Dialect as _, Point};
use crate::llvm::error::BackendError;

pub(super) type Int<'ctx> = Result<IntValue<'ctx>, BackendError>;

/// Lanes of a warp.
pub(super) const LANES: u64 = 32;

/// Whether there is code for an operation here.
pub(super) fn knows(known: Known) -> bool {
    match known {
        Known::ThreadIdx(_)
        | Known::BlockIdx(_)
        | Known::BlockDim(_)
        | Known::GridDim(_)
        | Known::LaneId
        | Known::WarpId
        | Known::LaneMask(_)
        | Known::ActiveMask
        | Known::Shuffle(_)
        | Known::Vote(_)
        | Known::Match(_)
        | Known::Reduce(_)
        | Known::WarpSync => true,
        Known::TargetIsGpu | Known::TargetSm => false,
    }
}

/// An operation's value; of one that gives none, nothing.
pub(super) fn lower<'ctx>(
    amd: &Amd,
    at: &Point<'_, '_, 'ctx>,
    (known, scalar): (Known, Scalar),
    args: &[BasicValueEnum<'ctx>],
) -> Result<Option<BasicValueEnum<'ctx>>, BackendError> {
    let value = match known {
        Known::ThreadIdx(axis) => amd.thread_index(at, axis.index())?.into(),
        Known::BlockIdx(axis) => amd.block_index(at, axis.index())?.into(),
        Known::BlockDim(axis) => extent(at, true, axis.index())?.into(),
        Known::GridDim(axis) => extent(at, false, axis.index())?.into(),
        Known::LaneId => lane(at)?.into(),
        Known::WarpId => warp(amd, at)?.into(),
        Known::LaneMask(op) => lane_mask(at, op)?.into(),
        Known::ActiveMask => ballot(at, at.int(1).const_int(1, false))?.into(),
        Known::Shuffle(shuffle) => shuffled(at, shuffle, args)?,
        Known::Vote(vote) => voted(at, vote, args)?.into(),
        Known::Match(which) => matched(at, which, args)?.into(),
        Known::Reduce(how) => reduced(at, (how, scalar), args)?.into(),
        Known::WarpSync => {
            at.fence((Ordering::Release, Scope::Block));
            at.call("llvm.amdgcn.wave.barrier", &[], &[])?;
            at.fence((Ordering::Acquire, Scope::Block));
            return Ok(None);
        }
        Known::TargetIsGpu | Known::TargetSm => {
            return Err(BackendError::new("lower", format!("no code for {known:?}")));
        }
    };
    Ok(Some(value))
}

pub(super) fn number<'ctx>(at: &Point<'_, '_, 'ctx>, number: u64) -> IntValue<'ctx> {
    at.int(32).const_int(number, false)
}

/// The number of the thread in its wave, 0 to 63.
fn lane_of_wave<'ctx>(at: &Point<'_, '_, 'ctx>) -> Int<'ctx> {
    let all = at.int(32).const_all_ones().into();
    let below = at.number("llvm.amdgcn.mbcnt.lo", &[all, number(at, 0).into()])?;
    at.number("llvm.amdgcn.mbcnt.hi", &[all, below.into()])
}

/// The number of the thread's warp in its block: threads are in waves by their linear index.
fn warp<'ctx>(amd: &Amd, at: &Point<'_, '_, 'ctx>) -> Int<'ctx> {
    let mut index = amd.thread_index(at, 2)?;
    for axis in [1, 0] {
        index = at
            .builder
            .build_int_mul(index, extent(at, true, axis)?, "")?;
        index = at
            .builder
            .build_int_add(index, amd.thread_index(at, axis)?, "")?;
    }
    let digits = number(at, LANES.trailing_zeros().into());
    Ok(at.builder.build_right_shift(index, digits, false, "")?)
}

/// The number of the thread in its half.
fn lane<'ctx>(at: &Point<'_, '_, 'ctx>) -> Int<'ctx> {
    let lane = lane_of_wave(at)?;
    Ok(at.builder.build_and(lane, number(at, LANES - 1), "")?)
}

/// The first lane of the half that the thread is in.
fn half<'ctx>(at: &Point<'_, '_, 'ctx>) -> Int<'ctx> {
    let lane = lane_of_wave(at)?;
    Ok(at.builder.build_and(lane, number(at, LANES), "")?)
}

pub(super) fn lane_mask<'ctx>(at: &Point<'_, '_, 'ctx>, op: CompareOp) -> Int<'ctx> {
    let (builder, lane) = (at.builder, lane(at)?);
    let one = builder.build_left_shift(number(at, 1), lane, "")?;
    let below = builder.build_int_sub(one, number(at, 1), "")?;
    let up_to = builder.build_or(one, below, "")?;
    Ok(match op {
        CompareOp::Eq => one,
        CompareOp::Ne => builder.build_not(one, "")?,
        CompareOp::Lt => below,
        CompareOp::Le => up_to,
        CompareOp::Gt => builder.build_not(up_to, "")?,
        CompareOp::Ge => builder.build_not(below, "")?,
    })
}

/// The lanes of the thread's half that are here and say yes.
pub(super) fn ballot<'ctx>(at: &Point<'_, '_, 'ctx>, yes: IntValue<'ctx>) -> Int<'ctx> {
    let wave = at.int(64);
    let lanes = at.value("llvm.amdgcn.ballot", &[wave.into()], &[yes.into()])?;
    let first = at.builder.build_int_z_extend(half(at)?, wave, "")?;
    let lanes = at
        .builder
        .build_right_shift(lanes.into_int_value(), first, false, "")?;
    Ok(at.builder.build_int_truncate(lanes, at.int(32), "")?)
}

/// Arguments: member mask, what the lane says.
fn voted<'ctx>(at: &Point<'_, '_, 'ctx>, vote: Vote, args: &[BasicValueEnum<'ctx>]) -> Int<'ctx> {
    let (builder, members) = (at.builder, args[0].into_int_value());
    let yes = builder.build_and(ballot(at, args[1].into_int_value())?, members, "")?;
    let is = |lanes| builder.build_int_compare(IntPredicate::EQ, yes, lanes, "");
    let none = members.get_type().const_zero();
    Ok(match vote {
        Vote::Ballot => yes,
        Vote::Any => builder.build_not(is(none)?, "")?,
        Vote::All => is(members)?,
        Vote::Uniform => builder.build_or(is(none)?, is(members)?, "")?,
    })
}

/// Arguments: member mask, value, source or distance, width of a segment. As PTX ISA, "shfl.sync": a lane
/// reads itself where it would read beyond its segment.
fn shuffled<'ctx>(
    at: &Point<'_, '_, 'ctx>,
    shuffle: Shuffle,
    args: &[BasicValueEnum<'ctx>],
) -> Result<BasicValueEnum<'ctx>, BackendError> {
    let (builder, own, last_lane) = (at.builder, lane(at)?, number(at, LANES - 1));
    let from = builder.build_and(args[2].into_int_value(), last_lane, "")?;
    let outside = builder.build_int_sub(number(at, LANES), args[3].into_int_value(), "")?;
    let outside = builder.build_and(outside, last_lane, "")?;
    let inside = builder.build_xor(outside, last_lane, "")?;
    let first = builder.build_and(own, outside, "")?;
    let last = builder.build_or(first, inside, "")?;
    let is = |op, a, b| builder.build_int_compare(op, a, b, "");
    let (read, there) = match shuffle {
        Shuffle::Idx => {
            let read = builder.build_or(first, builder.build_and(from, inside, "")?, "")?;
            (read, at.int(1).const_int(1, false))
        }
        Shuffle::Up => {
            let read = builder.build_int_sub(own, from, "")?;
            (read, is(IntPredicate::SGE, read, first)?)
        }
        Shuffle::Down => {
            let read = builder.build_int_add(own, from, "")?;
            (read, is(IntPredicate::ULE, read, last)?)
        }
        Shuffle::Xor => {
            let read = builder.build_xor(own, from, "")?;
            (read, is(IntPredicate::ULE, read, last)?)
        }
    };
    let read = builder.build_select(there, read, own, "")?.into_int_value();
    permuted(at, args[1], read)
}

/// The value of a lane of the thread's half (`ds_bpermute_b32`, whose address is four times the lane): word by word.
pub(super) fn permuted<'ctx>(
    at: &Point<'_, '_, 'ctx>,
    value: BasicValueEnum<'ctx>,
    lane: IntValue<'ctx>,
) -> Result<BasicValueEnum<'ctx>, BackendError> {
    let (builder, word, ty) = (at.builder, at.int(32), value.get_type());
    let lane = builder.build_or(lane, half(at)?, "")?;
    let address = builder.build_int_mul(lane, number(at, 4), "")?;
    let bits = match ty {
        BasicTypeEnum::IntType(ty) => ty.get_bit_width(),
        BasicTypeEnum::FloatType(ty) => ty.get_bit_width(),
        _ => return Err(BackendError::new("lower", "a shuffle of what is no number")),
    };
    let whole = at.int(bits);
    let own = builder.build_bit_cast(value, whole, "")?.into_int_value();
    let mut result = whole.const_zero();
    for start in (0..bits).step_by(32) {
        let start = whole.const_int(start.into(), false);
        let part = builder.build_right_shift(own, start, false, "")?;
        let part = builder.build_int_cast_sign_flag(part, word, false, "")?;
        let part = at.number("llvm.amdgcn.ds.bpermute", &[address.into(), part.into()])?;
        let part = builder.build_int_cast_sign_flag(part, whole, false, "")?;
        let part = builder.build_left_shift(part, start, "")?;
        result = builder.build_or(result, part, "")?;
    }
    Ok(builder.build_bit_cast(result, ty, "")?)
}
