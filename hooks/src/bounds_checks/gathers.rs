//! Indices that come out of memory, in loops that compute and change nothing else.
//!
//! Such a loop can be run to its end with another element in the place of one that is out of bounds, as long as
//! that is noticed: then it is run again as it was, from what its variables were, and faults where it does. So the
//! loop has no way out in the middle, and the loads of several turns can be under way together.

use std::collections::HashSet;

use kiln_compiler::ir::{
    BinaryOp, Check, CompareOp, Constant, Control, Inst, InstData, Read, Source, Type, TypeTable,
    Value, Var, VarUse,
};

use super::before::{Before, Number, Truth};
use super::proof::{known_length, length};
use super::versions::Code;

/// The accesses of a loop whose indices are looked at on the way.
#[derive(Default)]
pub(super) struct Gathers {
    pub(super) list: Vec<Gather>,
    /// The limits of their indices, each once.
    pub(super) limits: Vec<Largest>,
}

/// An access whose index is looked at in the loop.
pub(super) struct Gather {
    pub(super) inst: Inst,
    /// Which of the limits its index has.
    pub(super) limit: usize,
}

/// The largest index there is, of an unsigned type, and the zero of that type.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) struct Largest {
    pub(super) largest: Value,
    pub(super) zero: Value,
    pub(super) ty: Type,
}

/// The accesses of a loop that are still checked, if it is such a loop.
///
/// Adds to the test that there is another element.
pub(super) fn of(
    before: &mut Before<'_>,
    types: &TypeTable,
    (the_loop, proved): (Inst, &HashSet<Inst>),
    test: &mut Truth,
) -> Option<Gathers> {
    let Control::For { body, .. } = before.function.insts[the_loop].data.control() else {
        return None;
    };
    let mut insts = Vec::new();
    before.function.walk(body, &mut |_, inst| insts.push(inst));
    if !insts.iter().all(|&inst| only_computes(before, inst)) {
        return None;
    }
    let mut gathers = Gathers::default();
    for inst in insts.into_iter().filter(|inst| !proved.contains(inst)) {
        if let Some(check) = before.function.insts[inst].data.check() {
            let largest = largest(before, types, check, test)?;
            let known = gathers.limits.iter().position(|limit| *limit == largest);
            let limit = known.unwrap_or(gathers.limits.len());
            if known.is_none() {
                gathers.limits.push(largest);
            }
            gathers.list.push(Gather { inst, limit });
        }
    }
    Some(gathers)
}

/// Whether an instruction of a loop changes variables alone and stays in the loop.
fn only_computes(before: &Before<'_>, inst: Inst) -> bool {
    let data = &before.function.insts[inst].data;
    let facts = data.facts(before.intrinsics);
    if let Some(VarUse::Set(..)) = data.var_use() {
        return true;
    }
    match data.control() {
        Control::If { .. } => return true,
        Control::Leave { depth, .. } => return depth == 0,
        Control::Loop { .. } | Control::For { .. } | Control::Return { .. } => return false,
        Control::Next => {}
    }
    let quiet = !facts.writes && !facts.meets && facts.orders.is_none();
    quiet
        && match facts.source {
            Source::Operands | Source::Variable(_) => true,
            Source::Memory { read, .. } => read == Read::Plain,
            Source::Row(_) => facts.is_harmless(),
            Source::None | Source::Own | Source::Execution | Source::Callee => false,
        }
}

/// The largest index of an access, in the type in which it is compared.
fn largest(
    before: &mut Before<'_>,
    types: &TypeTable,
    check: Check,
    test: &mut Truth,
) -> Option<Largest> {
    let known = known_length(types, before.function.type_of(check.base));
    let is_narrow = before.function.type_of(check.index) == Type::U32;
    let (number, ty, length) = match known {
        Some(known) => {
            let fits = u32::try_from(known).is_ok();
            let ty = if is_narrow && fits {
                Type::U32
            } else {
                Type::U64
            };
            let constant = InstData::Const(Constant::Int(known.into()));
            (Number::Known(known), ty, before.put(constant, ty))
        }
        None => {
            let slice = before.moved(check.base)?;
            let (_, is_wide) = types.as_slice(before.function.type_of(slice))?;
            let ty = if is_narrow && !is_wide {
                Type::U32
            } else {
                Type::U64
            };
            let length = before.put(InstData::SliceLen { slice }, ty);
            (self::length(before, slice), ty, length)
        }
    };
    let is_there = before.is_below(Number::Known(0), number);
    *test = before.and(*test, is_there);
    let one = before.put(InstData::Const(Constant::Int(1)), ty);
    let (op, args) = (BinaryOp::Sub, [length, one]);
    Some(Largest {
        largest: before.put(InstData::Binary { op, args }, ty),
        zero: before.put(InstData::Const(Constant::Int(0)), ty),
        ty,
    })
}

impl Gathers {
    /// Runs the loop, and notes in `outside` whether an index was out of bounds.
    pub(super) fn look(&self, code: &mut Code<'_>, fast: Inst, (seen, outside): (&[Var], Var)) {
        for (limit, &seen) in self.limits.iter().zip(seen) {
            code.effect(InstData::VarSet(seen, limit.zero));
        }
        code.put(fast);
        for (limit, &seen) in self.limits.iter().zip(seen) {
            let seen = code.value(InstData::VarGet(seen), limit.ty);
            let (op, args) = (CompareOp::Gt, [seen, limit.largest]);
            let is_outside = code.value(InstData::Compare { op, args }, Type::BOOL);
            let was = code.value(InstData::VarGet(outside), Type::BOOL);
            let (op, args) = (BinaryOp::Or, [was, is_outside]);
            let now = code.value(InstData::Binary { op, args }, Type::BOOL);
            code.effect(InstData::VarSet(outside, now));
        }
    }
}

impl Largest {
    /// Has an access select an element that there is, and notes in `seen` the largest index that was asked for.
    pub(super) fn put(&self, code: &mut Code<'_>, seen: Var) {
        let index = code.index();
        let index = match code.function.type_of(index) {
            ty if ty == self.ty => index,
            // A negative index becomes one beyond all.
            _ => code.value(InstData::Cast { arg: index }, self.ty),
        };
        let was = code.value(InstData::VarGet(seen), self.ty);
        let (op, args) = (BinaryOp::Max, [was, index]);
        let now = code.value(InstData::Binary { op, args }, self.ty);
        code.effect(InstData::VarSet(seen, now));
        let (op, args) = (BinaryOp::Min, [index, self.largest]);
        let there = code.value(InstData::Binary { op, args }, self.ty);
        code.select(there);
    }
}
