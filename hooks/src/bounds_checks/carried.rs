//! Variables that a loop carries from turn to turn in another way than by counting its turns.
//!
//! ```text
//! while s > 0 { ..; s /= 2; }             // from 1 to what s was
//! while s < n { ..; s *= 2; }             // from what s was to n - 1
//! while i > 0 { i -= 1; .. }              // from 0 to what i was, less 1
//! for k in 0..n { ..; at += stride; }     // from what at was to n - 1 strides beyond
//! ```
//!
//! A turn has two values of such a variable, one before its assignment and one behind it. Both become values of the
//! turn (`settle`), so that an index says which is meant, and of which loop.

use std::collections::{BTreeSet, HashMap, HashSet};

use kiln_compiler::ir::{
    BinaryOp, Control, Function, Inst, InstData, Region, Scalar, TypeTable, Value, Var, VarUse,
};

use super::before::{Before, Inside, Number, Truth, known_integer};
use super::clamped;
use super::counter::{Counter, Counts, defining, is_left_unless};
use super::sum::LARGE;
use super::turns::Turns;

/// No variable is multiplied with more in a turn.
const MAX_FACTOR: i64 = 1 << 20;

/// What a turn makes of a variable.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Way {
    /// What is the same in each turn is added, or taken away.
    By { step: Value, falls: bool },
    /// A product with a number.
    Times(i64),
    /// A quotient, which is nearer to 0.
    Shrinks,
}

/// A variable that one instruction of a loop assigns, in each turn that comes to it, by what it was.
#[derive(Copy, Clone, Debug)]
pub(super) struct Carried {
    pub(super) var: Var,
    way: Way,
    /// Where the assignment stands in the loop's region.
    at: usize,
    pub(super) counts: Counts,
    pub(super) scalar: Scalar,
}

impl Carried {
    fn of(function: &Function, (body, inside): (Region, &Inside), var: Var) -> Option<Carried> {
        let scalar = function.vars[var].ty.as_scalar()?;
        if inside.assignments(var) != 1 || !scalar.is_int() || scalar.bits() < 32 {
            return None;
        }
        let (at, next) = assignment(function, body, var)?;
        let is_old = |value| inside.defines(function, value) && reads(function, value) == Some(var);
        let (old, way) = way(function, next, is_old)?;
        Some(Carried {
            var,
            way,
            at,
            counts: Counts::Index(old),
            scalar,
        })
    }

    /// The variable that a value of the loop is read from.
    pub(super) fn of_read(
        function: &Function,
        (body, inside): (Region, &Inside),
        value: Value,
    ) -> Option<Carried> {
        let var = reads(function, value).filter(|_| inside.defines(function, value))?;
        Carried::of(function, (body, inside), var)
    }

    /// What each turn adds.
    pub(super) fn added(&self) -> Option<Value> {
        match self.way {
            Way::By { step, falls: false } => Some(step),
            _ => None,
        }
    }

    /// Whether the assignment stands behind an instruction of the loop's region.
    pub(super) fn is_behind(&self, function: &Function, body: Region, inst: Inst) -> bool {
        let insts = &function.regions[body].insts;
        insts[..self.at].contains(&inst)
    }

    /// What the variable is before the loop, if that can be asked, and what must hold for that to be a number.
    fn first(&self, (before, turns): (&mut Before<'_>, &Turns)) -> Option<(Number, Truth)> {
        let value = turns.first(before, self.var)?;
        let number = before.number(value);
        let needs = match self.scalar.bits() {
            64 => before.is_below(number, Number::Known(LARGE)),
            _ => Truth::Known(true),
        };
        Some((number, needs))
    }

    /// The number beyond all that the variable can be; of 64 bits the one below which it is looked at.
    fn beyond(&self) -> i64 {
        match self.scalar.bits() {
            64 => LARGE,
            bits => 1 << (bits - u32::from(self.scalar.is_signed_int())),
        }
    }

    fn counter(&self, (first, last): (Number, Number), needs: Truth) -> Counter {
        Counter {
            counts: self.counts,
            first,
            last,
            below: None,
            by_one: false,
            is_signed: self.scalar.is_signed_int(),
            falls: false,
            needs,
            guard: None,
        }
    }
}

/// The instruction of a loop's region that assigns a variable, and what.
fn assignment(function: &Function, body: Region, var: Var) -> Option<(usize, Value)> {
    let insts = function.regions[body].insts.iter().enumerate();
    let mut assigned = insts.filter_map(|(at, &inst)| match function.insts[inst].data.var_use() {
        Some(VarUse::Set(set, next)) if set == var => Some((at, next)),
        _ => None,
    });
    assigned.next()
}

/// The variable that a value is read from.
fn reads(function: &Function, value: Value) -> Option<Var> {
    match defining(function, value) {
        Some(&InstData::VarGet(var)) => Some(var),
        _ => None,
    }
}

/// What an operation makes of a value, and the value.
fn way(function: &Function, next: Value, is_old: impl Fn(Value) -> bool) -> Option<(Value, Way)> {
    let &InstData::Binary { op, args: [a, b] } = defining(function, next)? else {
        return None;
    };
    let known = known_integer(function, b).filter(|known| (1..=MAX_FACTOR).contains(known));
    let by = |step, falls| Way::By { step, falls };
    let (old, way) = match (op, is_old(a), is_old(b)) {
        (BinaryOp::Add, true, true) => (a, Way::Times(2)),
        (BinaryOp::Add, true, false) => (a, by(b, false)),
        (BinaryOp::Add, false, true) => (b, by(a, false)),
        (BinaryOp::Sub, true, false) => (a, by(b, true)),
        (BinaryOp::Mul, true, false) => (a, Way::Times(known?)),
        (BinaryOp::Shl, true, false) => (a, Way::Times(1 << known.filter(|by| *by < 20)?)),
        (BinaryOp::Div, true, false) => known.map(|_| (a, Way::Shrinks))?,
        (BinaryOp::Shr, true, false) => known.filter(|by| *by < 32).map(|_| (a, Way::Shrinks))?,
        _ => return None,
    };
    Some((old, way))
}

/// Calls `f` for instructions and for those within them.
fn walk_insts(function: &Function, insts: &[Inst], mut f: impl FnMut(Inst)) {
    for &inst in insts {
        f(inst);
        for region in function.insts[inst].data.regions() {
            function.walk(region, &mut |_, inner| f(inner));
        }
    }
}

/// Gives variables that loops carry a value for what they are in a turn before their assignment, and has what is behind
/// it take what was assigned; in loops with checks.
pub(super) fn settle(function: &mut Function, types: &TypeTable, on_cpu: bool) {
    let mut loops = Vec::new();
    function.walk(function.body, &mut |_, inst| {
        if function.insts[inst].data.is_loop() {
            loops.push(inst);
        }
    });
    let mut now = HashMap::new();
    for the_loop in loops {
        let inside = Inside::of(function, the_loop);
        let is_checked = |inst| clamped::check(function, types, (inst, on_cpu)).is_some();
        let [body] = function.insts[the_loop].data.regions()[..] else {
            continue;
        };
        if !inside.insts().any(is_checked) {
            continue;
        }
        for var in inside.assigned() {
            if let Some(carried) = Carried::of(function, (body, &inside), var) {
                carried.settle(function, body, &mut now);
            }
        }
    }
    if !now.is_empty() {
        for (_, node) in function.insts.iter_mut() {
            (node.data).map_operands(|value| now.get(&value).copied().unwrap_or(value));
        }
    }
}

impl Carried {
    /// Notes what the values that are read of the variable become.
    fn settle(&self, function: &mut Function, body: Region, now: &mut HashMap<Value, Value>) {
        let insts = function.regions[body].insts.clone();
        let Some(VarUse::Set(_, next)) = function.insts[insts[self.at]].data.var_use() else {
            return;
        };
        let (ty, location) = (
            function.vars[self.var].ty,
            function.insts[insts[self.at]].location,
        );
        let turn = function.new_inst(InstData::VarGet(self.var), ty, location);
        let old = function.insts[turn].result;
        let sides = [
            (&insts[..self.at], old),
            (&insts[self.at + 1..], Some(next)),
        ];
        for (insts, value) in sides {
            walk_insts(function, insts, |inst| {
                let node = &function.insts[inst];
                if let (Some(VarUse::Get(var)), Some(read), Some(value)) =
                    (node.data.var_use(), node.result, value)
                    && var == self.var
                {
                    now.insert(read, value);
                }
            });
        }
        function.regions[body].insts.insert(0, turn);
    }
}

/// A loop that a variable leads to its end otherwise than by steps: which it is, and from which instruction on it is
/// between its ends. Adds to `test` what must hold for that.
pub(super) fn of_loop(
    (before, turns): (&mut Before<'_>, &Turns),
    test: &mut Truth,
) -> Option<(Counter, Inst)> {
    let Control::Loop { body } = before.function.insts[turns.inst].data.control() else {
        return None;
    };
    let (inst, (low, high, reaches)) = is_left_unless(before.function, body)?;
    let carried = |value| {
        let function = &*before.function;
        let carried = Carried::of_read(function, (body, &turns.inside), value)?;
        (carried.is_behind(function, body, inst)).then_some(carried)
    };
    let slack = i64::from(!reaches);
    let counter = match (carried(low), carried(high)) {
        (Some(rises), None) => rises.below((before, turns), (high, slack), test)?,
        (None, Some(falls)) => falls.above((before, turns), (low, slack), test)?,
        _ => return None,
    };
    Some((counter, inst))
}

impl Carried {
    /// A variable that is multiplied while it is below an end.
    fn below(
        &self,
        (before, turns): (&mut Before<'_>, &Turns),
        (end, slack): (Value, i64),
        test: &mut Truth,
    ) -> Option<Counter> {
        let Way::Times(factor) = self.way else {
            return None;
        };
        let end = before.moved(end)?;
        let (first, needs) = self.first((before, turns))?;
        *test = before.and(*test, needs);
        let end = before.number(end);
        let last = before.sub(end, Number::Known(slack));
        let is_small = before.is_below(last, Number::Known(LARGE));
        let next = before.mul(last, Number::Known(factor));
        let fits = before.is_below(next, Number::Known(self.beyond()));
        *test = before.and(*test, is_small);
        *test = before.and(*test, fits);
        if self.scalar.is_signed_int() {
            let is_natural = before.is_not_negative(first);
            *test = before.and(*test, is_natural);
        }
        Some(self.counter((first, last), Truth::Known(true)))
    }

    /// A variable that becomes less while it is above an end.
    fn above(
        &self,
        (before, turns): (&mut Before<'_>, &Turns),
        (end, slack): (Value, i64),
        test: &mut Truth,
    ) -> Option<Counter> {
        let least = known_integer(before.function, end).map(|end| end + slack);
        let least = least.filter(|least| least.abs() < LARGE / 4);
        match self.way {
            Way::By { step, falls: true } => {
                let step = known_integer(before.function, step).filter(|step| *step > 0)?;
                let never_wraps = match least {
                    Some(least) => least >= step || self.scalar.is_signed_int() && step < LARGE / 4,
                    // What is above another number is none that has no number below it.
                    None => step == 1 && slack == 1,
                };
                never_wraps.then_some(())?;
            }
            Way::Shrinks => least.filter(|least| *least >= 0).map(drop)?,
            Way::By { falls: false, .. } | Way::Times(_) => return None,
        }
        let end = before.moved(end)?;
        let (last, needs) = self.first((before, turns))?;
        *test = before.and(*test, needs);
        let end = before.number(end);
        if self.scalar.bits() == 64 {
            let is_small = before.is_below(end, Number::Known(LARGE));
            *test = before.and(*test, is_small);
        }
        let least = before.add(end, Number::Known(slack));
        Some(self.counter((least, last), Truth::Known(true)))
    }
}

/// The other variables that indices of a loop with a counter are made of, with the numbers of turns behind the first
/// one.
pub(super) fn beside(
    (before, turns): (&mut Before<'_>, &Turns),
    counts: Counts,
    behind: impl Fn(&mut Before<'_>) -> Option<Number>,
) -> Vec<Counter> {
    let Some(body) = turns.body(before.function) else {
        return Vec::new();
    };
    let mut counters = Vec::new();
    for var in of_indices(before) {
        let Some(carried) = Carried::of(before.function, (body, &turns.inside), var) else {
            continue;
        };
        if carried.counts == counts {
            continue;
        }
        let found = match carried.way {
            Way::By { step, falls } if !carried.is_passed_over(before.function, body) => {
                behind(before)
                    .and_then(|behind| carried.stepped((before, turns), (step, falls), behind))
            }
            Way::Shrinks if !carried.scalar.is_signed_int() => carried
                .first((before, turns))
                .map(|(first, needs)| ((Number::Known(0), first), needs)),
            Way::By { .. } | Way::Shrinks | Way::Times(_) => None,
        };
        counters.extend(found.map(|(ends, needs)| carried.counter(ends, needs)));
    }
    counters
}

/// The variables that indices of a loop are made of, in their order.
fn of_indices(before: &Before<'_>) -> BTreeSet<Var> {
    let function = &*before.function;
    let index = |inst: Inst| function.insts[inst].data.check().map(|check| check.index);
    let mut open: Vec<Value> = before.inside.insts().filter_map(index).collect();
    let (mut seen, mut vars) = (HashSet::new(), BTreeSet::new());
    while let Some(value) = open.pop() {
        if !seen.insert(value) || !before.inside.defines(function, value) {
            continue;
        }
        if let Some(data) = defining(function, value) {
            vars.extend(data.var_use().map(VarUse::var));
            data.for_each_operand(|operand| open.push(operand));
        }
    }
    vars
}

impl Carried {
    /// The least and the largest number of a variable to which each of so many turns adds something or takes it away,
    /// and what must hold for them to be.
    fn stepped(
        &self,
        (before, turns): (&mut Before<'_>, &Turns),
        (step, falls): (Value, bool),
        behind: Number,
    ) -> Option<((Number, Number), Truth)> {
        let step = before.moved(step)?;
        let (first, mut needs) = self.first((before, turns))?;
        let (step, falls) = match before.number(step) {
            Number::Known(known) if known < 0 => (Number::Known(-known), !falls),
            number => (number, falls),
        };
        let is_signed = self.scalar.is_signed_int();
        if self.scalar.bits() == 64 || is_signed {
            let is_small = before.is_below(step, Number::Known(LARGE / 2));
            needs = before.and(needs, is_small);
        }
        let way = before.mul(behind, step);
        let is_small = before.is_below(way, Number::Known(LARGE));
        needs = before.and(needs, is_small);
        let last = match falls {
            true => before.sub(first, way),
            false => before.add(first, way),
        };
        // From the least number of the type on.
        let (least, all) = match is_signed {
            true => (-self.beyond(), 2 * self.beyond()),
            false => (0, self.beyond()),
        };
        let from_least = before.sub(last, Number::Known(least));
        let fits = before.is_below(from_least, Number::Known(all));
        let ends = if falls { (last, first) } else { (first, last) };
        Some((ends, before.and(needs, fits)))
    }

    /// Whether a turn may begin without the assignment of the one before.
    pub(super) fn is_passed_over(&self, function: &Function, body: Region) -> bool {
        let insts = &function.regions[body].insts[..self.at];
        insts.iter().any(|&inst| goes_on(function, inst, 0))
    }
}

/// Whether an instruction begins the next turn of the loop that is so many loops around it, or of one around that.
fn goes_on(function: &Function, inst: Inst, around: u32) -> bool {
    let data = &function.insts[inst].data;
    if let Control::Leave { depth, again } = data.control() {
        return again && depth == around;
    }
    let around = around + u32::from(data.is_loop());
    data.regions().into_iter().any(|region| {
        let insts = &function.regions[region].insts;
        insts.iter().any(|&inner| goes_on(function, inner, around))
    })
}
