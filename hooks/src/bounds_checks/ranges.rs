//! What variables are at least and at most, as loops leave them.
//!
//! ```text
//! let (mut low, mut high) = (0, 20);      // both from 0 to 20 wherever the loop begins a turn
//! while low < high {                      // low from 0 to 19, high from 1 to 20
//!     let middle = (low + high) / 2;      // from 0 to 19
//!     if x >= edges[middle] { high = middle; } else { low = middle + 1; }
//! }
//! found[low] += 1;                        // from 0 to 20
//! ```
//!
//! The elements of arrays whose length is known are selected without a check where that says that they are there, also
//! those that a loop of known turns goes through: no version of it asks for them.
//! A function is gone through as it is executed, with a range for each integer; loops again and again, until a turn
//! adds nothing, where what still grows does so up to the next number that the function has. LLVM knows ranges, too, but gives up
//! on two variables that bound each other.

use std::collections::{HashMap, HashSet};

use kiln_compiler::ir::{
    BinaryOp, CompareOp, Constant, Control, Function, Inst, InstData, Module, Region, Type,
    TypeTable, UnaryOp, Value, Var,
};

use super::counter::defining;
use super::proof::known_length;

/// How many instructions are gone through in a function, those of loops each time.
const MAX_STEPS: usize = 20_000;

/// How often a loop is gone through before what grows may be anything.
const MAX_TURNS: usize = 12;

/// The least and the largest.
type Range = (i128, i128);

/// Takes the checks out that the ranges of variables make superfluous, in functions where a loop has some.
pub(super) fn make(module: &mut Module) {
    for (_, function) in module.functions.iter_mut() {
        let types = &module.types;
        let proved = match is_in_loops(function, types) {
            true => Ranges::of(function, types),
            false => continue,
        };
        for inst in proved {
            if let InstData::ElementPtr { checked, .. } | InstData::SliceIndex { checked, .. } =
                &mut function.insts[inst].data
            {
                *checked = false;
            }
        }
    }
}

/// Whether an array of known length is checked in a loop.
fn is_in_loops(function: &Function, types: &TypeTable) -> bool {
    let mut insts = function.insts.values();
    insts.any(|node| match node.data.control() {
        Control::Loop { body } | Control::For { body, .. } => has_checks(function, types, body),
        _ => false,
    })
}

/// The length of the array that an instruction selects a checked element of, if it is known.
fn checked_length(function: &Function, types: &TypeTable, inst: Inst) -> Option<(Value, i128)> {
    let check = function.insts[inst].data.check()?;
    let length = known_length(function, types, check.base)?;
    Some((check.index, length.into()))
}

/// Whether an array of known length is checked in a region.
fn has_checks(function: &Function, types: &TypeTable, region: Region) -> bool {
    function.regions[region].insts.iter().any(|&inst| {
        let mut inner = function.insts[inst].data.regions().into_iter();
        checked_length(function, types, inst).is_some()
            || inner.any(|region| has_checks(function, types, region))
    })
}

/// What is known where control is.
#[derive(Clone, PartialEq, Default)]
struct State {
    /// What integer variables are; those that are not here may be anything.
    vars: HashMap<Var, Range>,
    /// Values that are what a variable is.
    copies: HashMap<Value, Var>,
    /// What conditions and checks say of values.
    narrowed: HashMap<Value, Range>,
}

impl State {
    /// What is known where control comes from both.
    fn or(mut self, other: &State) -> State {
        let both = |a: Range, b: Range| (a.0.min(b.0), a.1.max(b.1));
        self.vars.retain(|var, range| {
            let other = other.vars.get(var);
            other.is_some_and(|&other| {
                *range = both(*range, other);
                true
            })
        });
        self.narrowed.retain(|value, range| {
            let other = other.narrowed.get(value);
            other.is_some_and(|&other| {
                *range = both(*range, other);
                true
            })
        });
        (self.copies).retain(|value, var| other.copies.get(value) == Some(var));
        self
    }
}

/// What is known where control comes from any, if it comes at all.
fn any(states: impl IntoIterator<Item = State>) -> Option<State> {
    (states.into_iter()).reduce(|known, state| known.or(&state))
}

/// What is known where a loop is left, and where it goes on.
#[derive(Default)]
struct Left {
    behind: Vec<State>,
    again: Vec<State>,
}

struct Ranges<'f> {
    function: &'f Function,
    types: &'f TypeTable,
    values: HashMap<Value, Range>,
    loops: Vec<Left>,
    /// The numbers of the function, and those beside them, in order.
    numbers: Vec<i128>,
    /// Whether what is known now holds whenever control is here.
    is_final: bool,
    steps: usize,
    proved: HashSet<Inst>,
}

impl Ranges<'_> {
    /// The accesses of arrays of known length that are in bounds.
    fn of(function: &Function, types: &TypeTable) -> HashSet<Inst> {
        let constants = function
            .insts
            .values()
            .filter_map(|node| node.data.constant());
        let mut numbers: Vec<i128> = (constants)
            .filter_map(|constant| match constant {
                Constant::Int(number) => Some([number - 1, number, number + 1]),
                _ => None,
            })
            .flatten()
            .chain([0])
            .collect();
        numbers.sort_unstable();
        numbers.dedup();
        let mut ranges = Ranges {
            function,
            types,
            values: HashMap::new(),
            loops: Vec::new(),
            numbers,
            is_final: true,
            steps: MAX_STEPS,
            proved: HashSet::new(),
        };
        ranges.region(function.body, State::default());
        if ranges.steps == 0 {
            ranges.proved.clear();
        }
        ranges.proved
    }

    /// What is known behind a region, if control comes there.
    fn region(&mut self, region: Region, mut state: State) -> Option<State> {
        let function = self.function;
        for &inst in &function.regions[region].insts {
            self.steps = self.steps.checked_sub(1)?;
            state = self.inst(inst, state)?;
        }
        Some(state)
    }

    fn inst(&mut self, inst: Inst, mut state: State) -> Option<State> {
        match self.function.insts[inst].data.control() {
            Control::Next => {
                self.next(inst, &mut state);
                Some(state)
            }
            Control::If {
                cond,
                then_region,
                else_region,
            } => {
                let other = self.says((cond, false), state.clone());
                let then = self.says((cond, true), state);
                let then = then.and_then(|state| self.region(then_region, state));
                let other = other.and_then(|state| match else_region {
                    Some(region) => self.region(region, state),
                    None => Some(state),
                });
                any([then, other].into_iter().flatten())
            }
            Control::Loop { body } => self.turns(body, None, state),
            Control::For {
                index,
                bounds: [start, end, step],
                body,
            } => {
                let [start, end] = [start, end].map(|value| self.range(value, &state));
                let all = self.all(self.function.type_of(index));
                let range = match (self.function.constant(step), start, end, all) {
                    (Some(Constant::Int(step)), Some(start), Some(end), _) if step > 0 => {
                        Some((start.0, (end.1 - 1).max(start.0)))
                    }
                    (.., all) => all,
                };
                self.turns(body, Some((index, range)), state)
            }
            Control::Leave { depth, again } => {
                let around = self.loops.len().checked_sub(depth as usize + 1)?;
                let left = &mut self.loops[around];
                let to = if again {
                    &mut left.again
                } else {
                    &mut left.behind
                };
                to.push(state);
                None
            }
            Control::Return { .. } => None,
        }
    }

    /// What is known behind a loop, with the range of its index if it has one.
    fn turns(
        &mut self,
        body: Region,
        index: Option<(Value, Option<Range>)>,
        entry: State,
    ) -> Option<State> {
        if let Some((index, range)) = index {
            self.values.remove(&index);
            range.map(|range| self.values.insert(index, range));
        }
        let is_final = std::mem::replace(&mut self.is_final, false);
        let mut state = entry.clone();
        for turn in 0.. {
            let (again, _) = self.turn(body, state.clone());
            if self.steps == 0 {
                return None;
            }
            let grown = again.map_or_else(|| entry.clone(), |again| entry.clone().or(&again));
            let grown = grown.or(&state);
            if grown == state {
                break;
            }
            state = self.widened(&state, grown, turn);
        }
        self.is_final = is_final;
        let (_, behind) = self.turn(body, state.clone());
        any(behind.into_iter().chain(index.map(|_| state)))
    }

    /// What is known where a turn ends in another one, and where the loop is left.
    fn turn(&mut self, body: Region, state: State) -> (Option<State>, Vec<State>) {
        self.loops.push(Left::default());
        let end = self.region(body, state);
        let left = self.loops.pop().unwrap_or_default();
        (any(left.again.into_iter().chain(end)), left.behind)
    }

    /// What grows, up to the next number of the function, or to anything.
    fn widened(&self, before: &State, mut grown: State, turn: usize) -> State {
        grown.vars.retain(|var, range| {
            let before = before.vars.get(var).copied().unwrap_or(*range);
            let (least, largest) = *range;
            if turn >= MAX_TURNS {
                return *range == before;
            }
            let below = self.numbers.iter().rev().find(|&&number| number <= least);
            let above = self.numbers.iter().find(|&&number| number >= largest);
            let (Some(&below), Some(&above)) = (below, above) else {
                return *range == before;
            };
            let is_same = (least == before.0, largest == before.1);
            range.0 = if is_same.0 { least } else { below };
            range.1 = if is_same.1 { largest } else { above };
            true
        });
        (grown.narrowed).retain(|value, range| before.narrowed.get(value) == Some(range));
        grown
    }

    /// What an instruction does that goes to the next one.
    fn next(&mut self, inst: Inst, state: &mut State) {
        let node = &self.function.insts[inst];
        if let Some((index, length)) = checked_length(self.function, self.types, inst) {
            let range = self.range(index, state);
            let is_inside = range.is_some_and(|(least, largest)| least >= 0 && largest < length);
            if self.is_final && is_inside {
                self.proved.insert(inst);
            }
            // Nothing is behind a check that fails.
            self.narrow(index, (0, length - 1), state);
        }
        if let InstData::VarSet(var, value) = node.data {
            state.copies.retain(|_, other| *other != var);
            state.vars.remove(&var);
            if let Some(range) = self.range(value, state) {
                state.vars.insert(var, range);
                state.copies.insert(value, var);
            }
            return;
        }
        let Some(result) = node.result else {
            return;
        };
        state.narrowed.remove(&result);
        state.copies.remove(&result);
        self.values.remove(&result);
        if let Some(range) = self.made(&node.data, self.function.type_of(result), state) {
            self.values.insert(result, range);
        }
        if let InstData::VarGet(var) = node.data {
            state.copies.insert(result, var);
        }
    }

    /// The range of what an operation gives.
    fn made(&self, data: &InstData, ty: Type, state: &State) -> Option<Range> {
        let all = self.all(ty)?;
        let range = |value: Value| self.range(value, state);
        let made = match *data {
            InstData::Const(Constant::Int(number)) => (number, number),
            InstData::Const(Constant::Zero) => (0, 0),
            InstData::VarGet(var) => state.vars.get(&var).copied().unwrap_or(all),
            InstData::Cast { arg } => range(arg).unwrap_or(all),
            InstData::Select {
                if_true, if_false, ..
            } => {
                let (a, b) = (range(if_true)?, range(if_false)?);
                (a.0.min(b.0), a.1.max(b.1))
            }
            InstData::Binary { op, args: [a, b] } => {
                of_operation(op, range(a)?, range(b)?).unwrap_or(all)
            }
            _ => return Some(all),
        };
        // What wraps around may be anything.
        let fits = made.0 >= all.0 && made.1 <= all.1;
        Some(if fits { made } else { all })
    }

    /// The range of a value; none if it is no integer.
    fn range(&self, value: Value, state: &State) -> Option<Range> {
        let narrowed = state.narrowed.get(&value);
        let known = narrowed.or_else(|| self.values.get(&value)).copied();
        known.or_else(|| self.all(self.function.type_of(value)))
    }

    /// All integers of a type.
    fn all(&self, ty: Type) -> Option<Range> {
        let range = ty.as_scalar()?.int_range()?;
        Some((*range.start(), *range.end()))
    }

    /// Adds that a value is in a range; false if it cannot be.
    fn narrow(&self, value: Value, to: Range, state: &mut State) -> bool {
        let Some(range) = self.range(value, state) else {
            return true;
        };
        let range = (range.0.max(to.0), range.1.min(to.1));
        if range.0 > range.1 {
            return false;
        }
        state.narrowed.insert(value, range);
        if let Some(&var) = state.copies.get(&value) {
            state.vars.insert(var, range);
        }
        true
    }

    /// What is known where a condition holds or does not, if that can be.
    fn says(&self, (cond, holds): (Value, bool), mut state: State) -> Option<State> {
        let (op, [a, b]) = match defining(self.function, cond) {
            Some(&InstData::Unary {
                op: UnaryOp::Not,
                arg,
            }) => return self.says((arg, !holds), state),
            Some(&InstData::Binary { op, args: [a, b] })
                if op == (if holds { BinaryOp::And } else { BinaryOp::Or }) =>
            {
                let state = self.says((a, holds), state)?;
                return self.says((b, holds), state);
            }
            Some(&InstData::Compare { op, args }) => (op, args),
            _ => return Some(state),
        };
        let (Some(of_a), Some(of_b)) = (self.range(a, &state), self.range(b, &state)) else {
            return Some(state);
        };
        // `a` is smaller, by one at least, and so on.
        let smaller = |apart: i128| [(of_a.0, of_b.1 - apart), (of_a.0 + apart, of_b.1)];
        let larger = |apart: i128| [(of_b.0 + apart, of_a.1), (of_b.0, of_a.1 - apart)];
        let [to_a, to_b] = match (op, holds) {
            (CompareOp::Lt, true) | (CompareOp::Ge, false) => smaller(1),
            (CompareOp::Le, true) | (CompareOp::Gt, false) => smaller(0),
            (CompareOp::Gt, true) | (CompareOp::Le, false) => larger(1),
            (CompareOp::Ge, true) | (CompareOp::Lt, false) => larger(0),
            (CompareOp::Eq, true) | (CompareOp::Ne, false) => [of_b, of_a],
            (CompareOp::Ne, true) | (CompareOp::Eq, false) => return Some(state),
        };
        let can_be = self.narrow(a, to_a, &mut state) && self.narrow(b, to_b, &mut state);
        can_be.then_some(state)
    }
}

/// The range of an operation's result, if nothing wraps.
fn of_operation(op: BinaryOp, a: Range, b: Range) -> Option<Range> {
    let is_natural = a.0 >= 0 && b.0 >= 0;
    Some(match op {
        BinaryOp::Add => (a.0.checked_add(b.0)?, a.1.checked_add(b.1)?),
        BinaryOp::Sub => (a.0.checked_sub(b.1)?, a.1.checked_sub(b.0)?),
        BinaryOp::Mul if is_natural => (a.0.checked_mul(b.0)?, a.1.checked_mul(b.1)?),
        BinaryOp::Div if is_natural && b.0 > 0 => (a.0 / b.1, a.1 / b.0),
        BinaryOp::Rem if is_natural && b.0 > 0 => (0, a.1.min(b.1 - 1)),
        BinaryOp::Min => (a.0.min(b.0), a.1.min(b.1)),
        BinaryOp::Max => (a.0.max(b.0), a.1.max(b.1)),
        BinaryOp::And if is_natural => (0, a.1.min(b.1)),
        BinaryOp::Shr if is_natural && b.0 == b.1 && b.1 < 8 => (a.0 >> b.0, a.1 >> b.0),
        _ => return None,
    })
}
