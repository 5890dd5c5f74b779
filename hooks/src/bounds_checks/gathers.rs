//! Indices that come out of memory, in loops that compute and change nothing else.
//!
//! Such a loop can be run to its end with another element in the place of one that is out of bounds, as long as
//! that is noticed: then it is run again as it was, from what its variables were, and faults where it does. So the
//! loop has no way out in the middle, and the loads of several turns can be under way together.

use std::collections::HashSet;

use kiln_compiler::ir::{
    BinaryOp, Check, CompareOp, Constant, Control, Inst, InstData, Read, Source, Type, TypeTable,
    UnaryOp, Value, Var, VarUse,
};

use super::before::{Before, Number, Truth};
use super::proof::{known_length, length};
use super::versions::Code;

/// An access whose index is looked at in the loop.
pub(super) struct Gather {
    pub(super) inst: Inst,
    /// The length, of type `u64`, and the zero of the index's type.
    length: Value,
    zero: Value,
}

/// The accesses of a loop that are still checked, if it is such a loop.
///
/// Adds to the test that there is another element.
pub(super) fn of(
    before: &mut Before<'_>,
    types: &TypeTable,
    (the_loop, proved): (Inst, &HashSet<Inst>),
    test: &mut Truth,
) -> Option<Vec<Gather>> {
    let Control::For { body, .. } = before.function.insts[the_loop].data.control() else {
        return None;
    };
    let mut insts = Vec::new();
    before.function.walk(body, &mut |_, inst| insts.push(inst));
    if !insts.iter().all(|&inst| only_computes(before, inst)) {
        return None;
    }
    let mut gathers = Vec::new();
    for inst in insts.into_iter().filter(|inst| !proved.contains(inst)) {
        if let Some(check) = before.function.insts[inst].data.check() {
            gathers.push(gather(before, types, (inst, check), test)?);
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

fn gather(
    before: &mut Before<'_>,
    types: &TypeTable,
    (inst, check): (Inst, Check),
    test: &mut Truth,
) -> Option<Gather> {
    let ty = before.function.type_of(check.index);
    let known = known_length(types, before.function.type_of(check.base));
    let (number, length) = match known {
        Some(known) => {
            let constant = InstData::Const(Constant::Int(known.into()));
            (Number::Known(known), before.put(constant, Type::U64))
        }
        None => {
            let slice = before.moved(check.base)?;
            let number = length(before, slice);
            (number, before.put(InstData::SliceLen { slice }, Type::U64))
        }
    };
    let is_there = before.is_below(Number::Known(0), number);
    *test = before.and(*test, is_there);
    let zero = before.put(InstData::Const(Constant::Int(0)), ty);
    Some(Gather { inst, length, zero })
}

impl Gather {
    /// Has the access select an element that there is, and notes in `outside` if that is another one.
    pub(super) fn put(&self, code: &mut Code<'_>, outside: Var) {
        let index = code.index();
        let wide = match code.function.type_of(index) {
            Type::U64 => index,
            _ => code.value(InstData::Cast { arg: index }, Type::U64),
        };
        let args = [wide, self.length];
        let inside = code.value(
            InstData::Compare {
                op: CompareOp::Lt,
                args,
            },
            Type::BOOL,
        );
        let not = InstData::Unary {
            op: UnaryOp::Not,
            arg: inside,
        };
        let not = code.value(not, Type::BOOL);
        let was = code.value(InstData::VarGet(outside), Type::BOOL);
        let (op, args) = (BinaryOp::Or, [was, not]);
        let now = code.value(InstData::Binary { op, args }, Type::BOOL);
        code.effect(InstData::VarSet(outside, now));
        let ty = code.function.type_of(index);
        let select = InstData::Select {
            cond: inside,
            if_true: index,
            if_false: self.zero,
        };
        let another = code.value(select, ty);
        code.select(another);
    }
}
