//! Indices that come out of memory, in loops that compute and change nothing else.
//!
//! Such a loop can go on without what it would do with an element that is out of bounds, as long as that is noticed:
//! then it is run again as it was, from what its variables were, and faults where it does. So the loop has no way
//! out in the middle, and the loads of several turns can be under way together.
//!
//! ```text
//! sum += x[columns[k]] * z[columns[k]];     let column = columns[k];
//!                                           let is_outside = !(column < min(x.len(), z.len()));
//!                                           outside |= is_outside;
//!                                           let there = if is_outside { 0 } else { column };
//!                                           sum += x[there] * z[there];   // unchecked
//! ```
//!
//! An index is looked at once, whatever is accessed by it. The first element is taken for one that is out of bounds, so that
//! there is no branch at which loads wait, and LLVM unrolls the loop as without checks.
//!
//! A turn is then made in part, or by another element, and others come behind it that the thread would not have made. So there
//! is nothing else in such a loop without a check than what a question stands for, or what an operation keeps in bounds.
//!
//! A loop that goes through memory in steps is one whose lanes share what lies between, for which warps at once are worth
//! more than loads at once, and `ptxas` has 32 registers for it. There what is left of a turn stands in a condition, which becomes predicates
//! that no number has to be kept for; `benches/RESULTS.md` has the times of both.

use std::collections::HashSet;

use kiln_compiler::ir::{
    BinaryOp, Check, CompareOp, Constant, Control, Function, Inst, InstCopy, InstData, Read,
    Source, Type, TypeTable, UnaryOp, Value, Var, VarUse,
};

use super::before::{Before, Number, Truth, known_integer};
use super::code::Code;
use super::counter::defining;
use super::proof::known_length;

/// Accesses of one index, which is looked at in the loop.
pub(super) struct Gather {
    pub(super) inst: Inst,
    /// The accesses behind it that have the same index.
    others: Vec<Inst>,
    index: Value,
    /// What the index must be below, of the unsigned type in which the two are compared.
    length: Value,
    ty: Type,
    /// Whether the access stands in an `if` of the loop.
    pub(super) is_inner: bool,
    /// Whether the first element is taken for one that is out of bounds.
    pub(super) takes_first: bool,
}

/// The accesses of a loop that are still checked, if it is such a loop.
///
/// Adds to the test that there is a first element, where one may be taken.
pub(super) fn of(
    before: &mut Before<'_>,
    types: &TypeTable,
    (the_loop, proved): (Inst, &HashSet<Inst>),
    test: &mut Truth,
) -> Option<Vec<Gather>> {
    let Control::For {
        body,
        bounds: [_, _, step],
        ..
    } = before.function.insts[the_loop].data.control()
    else {
        return None;
    };
    let by_one = known_integer(before.function, step) == Some(1);
    let mut insts = Vec::new();
    before.function.walk(body, &mut |_, inst| insts.push(inst));
    let is_there = |inst| proved.contains(&inst) || is_there_anyway(before, types, inst);
    let may_go_on = |&inst: &Inst| is_there(inst) && only_computes(before, inst);
    if !insts.iter().all(may_go_on) {
        return None;
    }
    let mut gathers = Vec::new();
    for inst in insts.into_iter().filter(|inst| !proved.contains(inst)) {
        if let Some(check) = before.function.insts[inst].data.check() {
            let (length, ty) = length(before, types, check)?;
            let is_inner = !before.function.regions[body].insts.contains(&inst);
            let takes_first = is_inner || by_one;
            if takes_first {
                let number = match known_length(before.function, types, check.base) {
                    Some(known) => Number::Known(known),
                    None => before.number(length),
                };
                let is_there = before.is_below(Number::Known(0), number);
                *test = before.and(*test, is_there);
            }
            let is_same = |gather: &&mut Gather| {
                let known = (gather.index, gather.ty, gather.is_inner);
                known == (check.index, ty, false) && !is_inner
            };
            if let Some(known) = gathers.iter_mut().find(is_same) {
                let (op, args) = (BinaryOp::Min, [known.length, length]);
                known.length = before.put(InstData::Binary { op, args }, ty);
                known.others.push(inst);
                continue;
            }
            gathers.push(Gather {
                inst,
                others: Vec::new(),
                index: check.index,
                length,
                ty,
                is_inner,
                takes_first,
            });
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

/// Whether an access without a check has its element whatever the turns before have done. It is made in turns to which the
/// thread would not have come, and behind ones that were done in part: what was known of variables, and what
/// an earlier check said of the same index, is not so there.
fn is_there_anyway(before: &Before<'_>, types: &TypeTable, inst: Inst) -> bool {
    let function = &*before.function;
    match function.insts[inst].data.access() {
        Some((access, false)) => known_length(function, types, access.base)
            .is_some_and(|length| is_below(function, access.index, length)),
        Some((_, true)) | None => true,
    }
}

/// Whether the operation that gives an index keeps it below a number, whatever it is made of.
fn is_below(function: &Function, index: Value, length: i64) -> bool {
    if let Some(known) = known_integer(function, index) {
        return (0..length).contains(&known);
    }
    let unsigned = |value: Value| {
        let scalar = function.type_of(value).as_scalar();
        scalar.filter(|scalar| scalar.is_int() && !scalar.is_signed_int())
    };
    if unsigned(index).is_some_and(|scalar| scalar.bits() < 63 && 1 << scalar.bits() <= length) {
        return true;
    }
    match defining(function, index) {
        Some(&InstData::Cast { arg }) => {
            let widens = unsigned(arg).is_some_and(|from| {
                let to = function.type_of(index).as_scalar();
                to.is_some_and(|to| from.bits() < to.bits())
            });
            widens && is_below(function, arg, length)
        }
        Some(&InstData::Binary { op, args: [a, b] }) if unsigned(index).is_some() => {
            let number = known_integer(function, b).or_else(|| match op {
                BinaryOp::And | BinaryOp::Min => known_integer(function, a),
                _ => None,
            });
            number.is_some_and(|number| match op {
                BinaryOp::And | BinaryOp::Min => (0..length).contains(&number),
                BinaryOp::Rem => (1..=length).contains(&number),
                _ => false,
            })
        }
        _ => false,
    }
}

/// The length that an index must be below, and the type in which it is compared.
fn length(before: &mut Before<'_>, types: &TypeTable, check: Check) -> Option<(Value, Type)> {
    let is_narrow = before.function.type_of(check.index) == Type::U32;
    let ty = |is_wide: bool| {
        if is_narrow && !is_wide {
            Type::U32
        } else {
            Type::U64
        }
    };
    if let Some(known) = known_length(before.function, types, check.base) {
        let ty = ty(u32::try_from(known).is_err());
        let length = InstData::Const(Constant::Int(known.into()));
        return Some((before.put(length, ty), ty));
    }
    let slice = before.moved(check.base)?;
    let (_, is_wide) = types.as_slice(before.function.type_of(slice))?;
    let ty = ty(is_wide);
    Some((before.put(InstData::SliceLen { slice }, ty), ty))
}

impl Gather {
    /// Notes in `outside` whether the index is out of bounds; says whether it is in bounds.
    pub(super) fn look(&self, code: &mut Code<'_>, copy: &InstCopy, outside: Var) -> Value {
        let index = code.index();
        let wide = match code.function.type_of(index) {
            ty if ty == self.ty => index,
            // A negative index becomes one beyond all.
            _ => code.value(InstData::Cast { arg: index }, self.ty),
        };
        let (op, args) = (CompareOp::Ge, [wide, self.length]);
        let is_outside = code.value(InstData::Compare { op, args }, Type::BOOL);
        let was = code.value(InstData::VarGet(outside), Type::BOOL);
        let (op, args) = (BinaryOp::Or, [was, is_outside]);
        let now = code.value(InstData::Binary { op, args }, Type::BOOL);
        code.effect(InstData::VarSet(outside, now));
        let there = if self.takes_first {
            let first = code.constant(0, self.ty);
            let there = InstData::Select {
                cond: is_outside,
                if_true: first,
                if_false: wide,
            };
            code.value(there, self.ty)
        } else {
            index
        };
        code.select(there);
        for inst in &self.others {
            code.select_at(copy.insts[inst], there);
        }
        // Of this index alone: whoever waits for that of an earlier turn has no loads of both under way.
        let (op, arg) = (UnaryOp::Not, is_outside);
        code.value(InstData::Unary { op, arg }, Type::BOOL)
    }
}
