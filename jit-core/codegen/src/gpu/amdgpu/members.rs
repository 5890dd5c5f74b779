//! What the lanes of a member mask have together: the machine has no instruction for any mask, so votes and reads of
//! other lanes are what it is made of. Lanes outside the mask may be away, and are read by nobody.

use inkwell::IntPredicate;
use inkwell::values::{BasicValueEnum, IntValue};

use kiln_ir::{CompareOp, Match, Reduction, Scalar};

use super::known::{Int, LANES, ballot, lane_mask, number, permuted};
use crate::gpu::lower::Point;
use crate::llvm::error::BackendError;

/// The members that have the thread's bits, or whether all have: a vote for each bit. Arguments: member mask, value.
pub(super) fn matched<'ctx>(
    at: &Point<'_, '_, 'ctx>,
    which: Match,
    args: &[BasicValueEnum<'ctx>],
) -> Int<'ctx> {
    let (builder, members) = (at.builder, args[0].into_int_value());
    let bits = match args[1] {
        BasicValueEnum::IntValue(value) => value,
        BasicValueEnum::FloatValue(value) => {
            let whole = at.int(value.get_type().get_bit_width());
            builder.build_bit_cast(value, whole, "")?.into_int_value()
        }
        _ => return Err(BackendError::new("lower", "a match of what is no number")),
    };
    let (ty, mut same) = (bits.get_type(), members);
    for bit in 0..ty.get_bit_width() {
        let is_set = builder.build_right_shift(bits, ty.const_int(bit.into(), false), false, "")?;
        let is_set = builder.build_int_truncate_or_bit_cast(is_set, at.int(1), "")?;
        let set = ballot(at, is_set)?;
        let alike = builder.build_select(is_set, set, builder.build_not(set, "")?, "")?;
        same = builder.build_and(same, alike.into_int_value(), "")?;
    }
    Ok(match which {
        Match::Any => same,
        Match::All => {
            let all = builder.build_int_compare(IntPredicate::EQ, same, members, "")?;
            let none = members.get_type().const_zero();
            builder
                .build_select(all, members, none, "")?
                .into_int_value()
        }
    })
}

/// The members' values combined. Arguments: member mask, value.
///
/// Each member reads the next one above it, then the one that this has come to, and so on: the distance, counted in members,
/// doubles each time (Wyllie, "The complexity of parallel computations", 1979). The first member then has all.
pub(super) fn reduced<'ctx>(
    at: &Point<'_, '_, 'ctx>,
    (how, scalar): (Reduction, Scalar),
    args: &[BasicValueEnum<'ctx>],
) -> Int<'ctx> {
    let (builder, members) = (at.builder, args[0].into_int_value());
    let mut sum = args[1].into_int_value();
    let above = builder.build_and(members, lane_mask(at, CompareOp::Gt)?, "")?;
    let mut next = first(at, above)?;
    for _ in 0..LANES.trailing_zeros() {
        // Behind the last member is the lane that there is not.
        let is_there = builder.build_int_compare(IntPredicate::ULT, next, number(at, LANES), "")?;
        let other = permuted(at, sum.into(), next)?.into_int_value();
        let behind = permuted(at, next.into(), next)?;
        let both = combined(at, (how, scalar), sum, other)?;
        sum = builder
            .build_select(is_there, both, sum, "")?
            .into_int_value();
        next = builder
            .build_select(is_there, behind, next.into(), "")?
            .into_int_value();
    }
    let first = first(at, members)?;
    Ok(permuted(at, sum.into(), first)?.into_int_value())
}

/// The first of some lanes; 32 if there is none.
fn first<'ctx>(at: &Point<'_, '_, 'ctx>, lanes: IntValue<'ctx>) -> Int<'ctx> {
    let zero_is_bad = at.int(1).const_zero();
    let overloads = [lanes.get_type().into()];
    let first = at.value("llvm.cttz", &overloads, &[lanes.into(), zero_is_bad.into()])?;
    Ok(first.into_int_value())
}

fn combined<'ctx>(
    at: &Point<'_, '_, 'ctx>,
    (how, scalar): (Reduction, Scalar),
    left: IntValue<'ctx>,
    right: IntValue<'ctx>,
) -> Int<'ctx> {
    let builder = at.builder;
    let extreme = |name: &str| {
        let sign = if scalar.is_signed_int() { 's' } else { 'u' };
        let (name, overloads) = (format!("llvm.{sign}{name}"), [left.get_type().into()]);
        let value = at.value(&name, &overloads, &[left.into(), right.into()])?;
        Ok(value.into_int_value())
    };
    match how {
        Reduction::Add => Ok(builder.build_int_add(left, right, "")?),
        Reduction::Min => extreme("min"),
        Reduction::Max => extreme("max"),
        Reduction::And => Ok(builder.build_and(left, right, "")?),
        Reduction::Or => Ok(builder.build_or(left, right, "")?),
        Reduction::Xor => Ok(builder.build_xor(left, right, "")?),
    }
}
