//! Values that are one of several: what the branches of an `if` set, what is selected, the smaller or larger of two.
//!
//! ```text
//! let west = if x > 0 { x - 1 } else { x };       // from 0 to the largest x
//! let near = (i + 1).min(n - 1);                  // from 0 to n - 1
//! ```
//!
//! Such a value is no sum, but it has ends: the least and the largest of those that it may be. What the condition
//! says of a value in its branch counts there.

use kiln_compiler::ir::{
    BinaryOp, Control, Function, Inst, InstData, Region, Value, ValueDef, Var, VarUse,
};

use super::before::{Before, MAX_STEPS, Number};
use super::counter::{Counter, defining};
use super::lanes::{self, Guard};

/// A value is one of so many at most.
const MAX_CHOICES: usize = 8;

/// What a value may be, and what holds where it is that.
type Choices = Vec<(Value, Vec<Guard>)>;

/// The least and the largest number of a value that is one of several. Adds to what must hold.
pub(super) fn ends(
    before: &mut Before<'_>,
    counters: &mut Vec<Counter>,
    value: Value,
    depth: u32,
) -> Option<[Number; 2]> {
    let data = defining(before.function, value)?.clone();
    match data {
        InstData::Binary {
            op: op @ (BinaryOp::Min | BinaryOp::Max),
            args: [a, b],
        } => smaller_or_larger(before, counters, (op, [a, b]), depth),
        InstData::Select {
            cond,
            if_true,
            if_false,
        } => {
            let choice = |(value, holds)| {
                let mut guards = Vec::new();
                lanes::guards(before.function, (cond, holds), &mut guards);
                (value, guards)
            };
            let choices = [(if_true, true), (if_false, false)].map(choice);
            all(before, counters, choices.into(), depth)
        }
        InstData::VarGet(var) => {
            let earlier = before.earlier(value)?;
            let mut choices = Vec::new();
            assigned(before, (&earlier, var), &[], &mut choices)?;
            all(before, counters, choices, depth)
        }
        _ => None,
    }
}

/// The ends of the smaller or the larger of two values. The smaller of two unsigned ones needs but one with ends.
fn smaller_or_larger(
    before: &mut Before<'_>,
    counters: &mut Vec<Counter>,
    (op, args): (BinaryOp, [Value; 2]),
    depth: u32,
) -> Option<[Number; 2]> {
    let mut found = Vec::new();
    for arg in args {
        let needs = before.needs;
        match lanes::ends(before, counters, arg, depth) {
            Some(ends) => found.push(ends),
            None => before.needs = needs,
        }
    }
    let is_signed = |value: Value| {
        let scalar = before.function.type_of(value).as_scalar();
        scalar.is_none_or(|scalar| scalar.is_signed_int())
    };
    match found[..] {
        [a, b] => Some([0, 1].map(|end| before.one_of(op, [a[end], b[end]]))),
        [[_, last]] if op == BinaryOp::Min && !is_signed(args[0]) => Some([Number::Known(0), last]),
        _ => None,
    }
}

/// The ends of all that a value may be.
fn all(
    before: &mut Before<'_>,
    counters: &mut Vec<Counter>,
    choices: Choices,
    depth: u32,
) -> Option<[Number; 2]> {
    let mut known: Option<[Number; 2]> = None;
    for (value, guards) in choices {
        let outer = std::mem::replace(&mut before.guards, guards);
        let ends = lanes::ends(before, counters, value, depth);
        before.guards = outer;
        let [first, last] = ends?;
        known = Some(match known {
            None => [first, last],
            Some([least, most]) => [
                before.one_of(BinaryOp::Min, [least, first]),
                before.one_of(BinaryOp::Max, [most, last]),
            ],
        });
    }
    known
}

/// Adds what a variable may have been assigned by instructions, the last ones first; `None` if that is not known.
fn assigned(
    before: &mut Before<'_>,
    (insts, var): (&[Inst], Var),
    guards: &[Guard],
    choices: &mut Choices,
) -> Option<()> {
    let is_one = |&(_, inst): &(usize, &Inst)| assigns(before.function, *inst, var);
    let (at, &inst) = insts.iter().enumerate().rev().find(is_one)?;
    let data = &before.function.insts[inst].data;
    if let Some(VarUse::Set(_, value)) = data.var_use() {
        choices.push((value, guards.to_vec()));
        return (choices.len() <= MAX_CHOICES).then_some(());
    }
    let Control::If {
        cond,
        then_region,
        else_region,
    } = data.control()
    else {
        return None;
    };
    for (region, holds) in [(Some(then_region), true), (else_region, false)] {
        let mut guards = guards.to_vec();
        lanes::guards(before.function, (cond, holds), &mut guards);
        // What was before it, if this branch assigns nothing.
        let mut path = insts[..at].to_vec();
        path.extend(region.into_iter().flat_map(|region| before.enter(region)));
        assigned(before, (&path, var), &guards, choices)?;
    }
    Some(())
}

/// Whether an instruction, or one in its regions, assigns a variable.
fn assigns(function: &Function, inst: Inst, var: Var) -> bool {
    let data = &function.insts[inst].data;
    let mut is_one = matches!(data.var_use(), Some(VarUse::Set(set, _)) if set == var);
    for region in data.regions() {
        function.walk(region, &mut |_, inner| {
            let data = &function.insts[inner].data;
            is_one |= matches!(data.var_use(), Some(VarUse::Set(set, _)) if set == var);
        });
    }
    is_one
}

impl Before<'_> {
    /// The instructions before that which defines a value, in its region.
    fn earlier(&mut self, value: Value) -> Option<Vec<Inst>> {
        let ValueDef::Inst(inst) = self.function.values[value].def else {
            return None;
        };
        let home = self.home(inst)?;
        let insts = &self.function.regions[home].insts;
        let at = insts.iter().position(|&other| other == inst)?;
        Some(insts[at.saturating_sub(MAX_STEPS as usize)..at].to_vec())
    }

    /// Notes that the values of a branch are none of those that are there before the loop.
    fn enter(&mut self, region: Region) -> Vec<Inst> {
        let branches = &mut self.branches;
        self.function.walk(region, &mut |_, inst| {
            branches.insert(inst);
        });
        self.function.regions[region].insts.clone()
    }

    /// The smaller or the larger of two numbers.
    fn one_of(&mut self, op: BinaryOp, [a, b]: [Number; 2]) -> Number {
        match (a, b) {
            (Number::Known(a), Number::Known(b)) => Number::Known(match op {
                BinaryOp::Min => a.min(b),
                _ => a.max(b),
            }),
            _ if a == b => a,
            _ => self.binary(op, a, b),
        }
    }
}
