//! Loops whose first or last iterations are split off: they become loops before it and behind it, and what conditions ask of them is
//! known in what is left. A comparison of integers there is a constant if it has one result in all iterations between, whatever the
//! arguments of a launch are ([`System`]).
//!
//! All three are in the order of the program, so that there is nothing to prove for it, and each is distributed as the loop is, so that
//! each iteration has one thread as before. What a schedule says besides is said of what is left. With `N` iterations, the first `a = min(n, N)` are split off and the last `b = min(m, N - a)`. A bound between
//! two of the loops is the start and so many steps, or the end where no iteration comes behind it: no number wraps around.

use std::collections::HashMap;

use kiln_jit_core::ir::{
    BinaryOp, CompareOp, Constant, Function, Inst, InstData, Type, Value, Var, VarUse,
};

use crate::affine::{Affine, Execution, Turns};
use crate::emit::Emit;
use crate::error::DirectiveError;
use crate::integer::{Linear, System};
use crate::private::Body;
use crate::program::Program;
use crate::reduce::Reduced;
use crate::schedule::{LoopSchedule, Schedule};
use crate::transform::{region_of, unsigned};

/// The most iterations that are split off at an end.
pub(crate) const MAX_PEELED: u32 = 64;

/// A loop with iterations to be split off.
pub(crate) struct Peel<'p> {
    pub(crate) program: &'p mut Program,
    pub(crate) schedule: &'p mut Schedule,
    /// By loop: the number of the loop of the program that it was.
    pub(crate) numbers: &'p mut Vec<usize>,
    /// What loops reduce.
    pub(crate) reduced: &'p mut Reduced,
    /// Loops within tiles.
    pub(crate) partial: &'p mut Vec<Inst>,
}

impl Peel<'_> {
    /// Splits so many of the first and of the last iterations of a loop off, that counts up by a literal and is not left from within.
    /// New loops have numbers behind all others.
    pub(crate) fn split(
        &mut self,
        inst: Inst,
        step: i128,
        [first, last]: [u32; 2],
    ) -> Result<(), DirectiveError> {
        self.refuse_arrays(inst)?;
        let known = Between::of(self.program, inst, [first, last]).comparisons(inst);
        let function = &mut self.program.module.functions[self.program.kernel];
        let InstData::For { start, end, .. } = function.insts[inst].data else {
            unreachable!("a schedule's loops are `for`s");
        };
        let at = function.insts[inst].location;
        let mut emit = Emit::new(function, at);
        let [left, right] = between(&mut emit, [start, end], step, [first, last]);
        let mut list = emit.list;
        if first > 0 {
            list.push(self.copy(inst, [start, left]));
        }
        list.push(inst);
        if last > 0 {
            list.push(self.copy(inst, [right, end]));
        }
        let function = &mut self.program.module.functions[self.program.kernel];
        if let InstData::For { start, end, .. } = &mut function.insts[inst].data {
            (*start, *end) = (left, right);
        }
        for (compare, holds) in known {
            function.insts[compare].data = InstData::Const(Constant::Bool(holds));
        }
        let region = region_of(function, inst);
        let insts = &mut function.regions[region].insts;
        if let Some(place) = insts.iter().position(|&held| held == inst) {
            insts.splice(place..=place, list);
        }
        Ok(())
    }

    /// A copy of a loop from a number to before another one, with what is known of the loops and marks in it.
    fn copy(&mut self, inst: Inst, bounds: [Value; 2]) -> Inst {
        let vars = self.own_vars(inst);
        let program = &mut *self.program;
        let function = &mut program.module.functions[program.kernel];
        let copy = function.copy_inst(inst);
        let mut own = HashMap::new();
        for var in vars {
            let data = function.vars[var].clone();
            own.insert(var, function.vars.push(data));
        }
        for &inner in copy.insts.values() {
            let data = &mut function.insts[inner].data;
            data.map_vars(|var| own.get(&var).copied().unwrap_or(var));
        }
        if let InstData::For { start, end, .. } = &mut function.insts[copy.inst].data {
            [*start, *end] = bounds;
        }
        for number in 0..program.loops.len() {
            let (held, marked) = program.loops[number];
            let Some(&new) = copy.insts.get(&held) else {
                continue;
            };
            let own = self.schedule.loops[number];
            let scheduled = match held == inst {
                true => LoopSchedule {
                    partition: own.partition,
                    independent: own.independent,
                    scan: own.scan,
                    ..LoopSchedule::default()
                },
                false => own,
            };
            program.loops.push((new, marked));
            self.schedule.loops.push(scheduled);
            self.numbers.push(self.numbers[number]);
        }
        let singular = program.singular.iter();
        let singular: Vec<_> = singular
            .filter_map(|(held, mark)| Some((*copy.insts.get(held)?, *copy.insts.get(mark)?)))
            .collect();
        program.singular.extend(singular);
        let reduced = self.reduced.iter();
        let reduced: Vec<_> = reduced
            .filter_map(|(held, op)| Some((*copy.insts.get(held)?, *op)))
            .collect();
        self.reduced.extend(reduced);
        let partial = self.partial.iter();
        let partial: Vec<_> = partial
            .filter_map(|held| copy.insts.get(held).copied())
            .collect();
        self.partial.extend(partial);
        copy.inst
    }

    /// The variables that a loop assigns, and that no iteration hands on.
    fn own_vars(&self, inst: Inst) -> Vec<Var> {
        let function = self.program.function();
        let mut own = Vec::new();
        for region in function.insts[inst].data.regions() {
            let carried = Body::new(self.program, (inst, ""), region).carried();
            function.walk(region, &mut |_, inner| {
                if let Some(VarUse::Set(var, _)) = function.insts[inner].data.var_use()
                    && carried.iter().all(|(held, _)| *held != var)
                    && !own.contains(&var)
                {
                    own.push(var);
                }
            });
        }
        own
    }

    /// Refuses a loop in which an array of the block is declared, which would be two.
    fn refuse_arrays(&self, inst: Inst) -> Result<(), DirectiveError> {
        let function = self.program.function();
        let mut found = None;
        for region in function.insts[inst].data.regions() {
            function.walk(region, &mut |_, inner| {
                let mut arrays = self.program.arrays.values();
                if arrays.any(|&assigned| assigned == inner) {
                    found = Some(inner);
                }
            });
        }
        let Some(array) = found else { return Ok(()) };
        Err(self.program.placement(
            function.insts[array].location,
            "an array in shared memory is declared in a loop whose first or last iterations are split off, where it would be another one: \
             declare it before the loop",
        ))
    }
}

/// The iterations of a loop without the first and the last ones.
struct Between<'p> {
    function: &'p Function,
    affine: Affine<'p>,
    turns: Option<Turns>,
    turn: usize,
    first: i128,
    last: i128,
}

impl<'p> Between<'p> {
    fn of(program: &'p Program, inst: Inst, [first, last]: [u32; 2]) -> Between<'p> {
        let function = program.function();
        let mut affine = Affine::new(function, &[]);
        Between {
            turns: affine.turns(inst),
            turn: affine.turn(inst),
            function,
            affine,
            first: first.into(),
            last: last.into(),
        }
    }

    /// The comparisons in the loop that have one result in all these iterations.
    fn comparisons(mut self, inst: Inst) -> Vec<(Inst, bool)> {
        let mut found = Vec::new();
        for region in self.function.insts[inst].data.regions() {
            let mut all = Vec::new();
            self.function.walk(region, &mut |_, inner| all.push(inner));
            for inner in all {
                if let InstData::Compare { op, args } = self.function.insts[inner].data {
                    let holds = self.possible(args).and_then(|possible| known(op, possible));
                    found.extend(holds.map(|holds| (inner, holds)));
                }
            }
        }
        found
    }

    /// Whether one of two integers may be less than the other, equal to it or more; `None` if they are no integers.
    fn possible(&mut self, [left, right]: [Value; 2]) -> Option<[bool; 3]> {
        let (mut system, mut execution) = (System::default(), Execution::new());
        let (affine, turns) = (&mut self.affine, self.turns.as_ref()?);
        let turn = execution.variable(affine, &mut system, self.turn)?;
        let turn = Linear::variable(turn);
        let ahead = turn.plus(&Linear::number(-self.first), 1)?;
        system.at_least.push(ahead);
        let start = execution.sum(affine, &mut system, &turns.start)?;
        let last = start.plus(&turn, turns.step)?;
        let last = last.plus(&Linear::number(self.last), turns.step)?;
        for end in &turns.ends {
            let end = execution.sum(affine, &mut system, end)?;
            let before = end.plus(&last, -1)?.plus(&Linear::number(-1), 1)?;
            system.at_least.push(before);
        }
        let forms = (affine.form(left)?, affine.form(right)?);
        let left = execution.value(affine, &mut system, &forms.0)?;
        let right = execution.value(affine, &mut system, &forms.1)?;
        let ahead = right.plus(&left, -1)?;
        let less = ahead.plus(&Linear::number(-1), 1)?;
        let more = ahead.times(-1)?.plus(&Linear::number(-1), 1)?;
        let solved = |equal: Option<Linear>, at_least: Option<Linear>| {
            let mut system = system.clone();
            system.equal.extend(equal);
            system.at_least.extend(at_least);
            system.has_solution().unwrap_or(true)
        };
        Some([
            solved(None, Some(less)),
            solved(Some(ahead), None),
            solved(None, Some(more)),
        ])
    }
}

/// Whether a comparison holds, if what is possible of its operands tells.
fn known(op: CompareOp, possible: [bool; 3]) -> Option<bool> {
    let holds = match op {
        CompareOp::Lt => [true, false, false],
        CompareOp::Le => [true, true, false],
        CompareOp::Eq => [false, true, false],
        CompareOp::Ne => [true, false, true],
        CompareOp::Ge => [false, true, true],
        CompareOp::Gt => [false, false, true],
    };
    let some = |wanted: bool| {
        let mut both = possible.iter().zip(&holds);
        both.any(|(&is_possible, &holds)| is_possible && holds == wanted)
    };
    match (some(true), some(false)) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        _ => None,
    }
}

/// Where the first iterations of a loop end that are split off, and where the last ones begin.
fn between(
    emit: &mut Emit<'_>,
    [start, end]: [Value; 2],
    step: i128,
    [first, last]: [u32; 2],
) -> [Value; 2] {
    let (ty, counted) = (emit.function.type_of(start), unsigned(emit.function, start));
    let count = count(emit, [start, end], step, counted);
    let [zero, size] = [0, step].map(|number| emit.int(number, counted));
    let (mut left, mut right, mut rest) = (start, end, count);
    let at = |emit: &mut Emit<'_>, turns: Value| {
        let ahead = emit.binary(BinaryOp::Mul, turns, size);
        let ahead = emit.cast(ahead, ty);
        emit.binary(BinaryOp::Add, start, ahead)
    };
    if first > 0 {
        let most = emit.int(first.into(), counted);
        let own = emit.binary(BinaryOp::Min, most, count);
        rest = emit.binary(BinaryOp::Sub, count, own);
        let behind = at(emit, own);
        let is_all = emit.compare(CompareOp::Eq, rest, zero);
        left = emit.select(is_all, end, behind);
    }
    if last > 0 {
        let most = emit.int(last.into(), counted);
        let own = emit.binary(BinaryOp::Min, most, rest);
        let before = emit.binary(BinaryOp::Sub, count, own);
        let before = at(emit, before);
        let is_none = emit.compare(CompareOp::Eq, own, zero);
        right = emit.select(is_none, end, before);
    }
    [left, right]
}

/// How many iterations there are.
fn count(emit: &mut Emit<'_>, [start, end]: [Value; 2], step: i128, counted: Type) -> Value {
    let has_some = emit.compare(CompareOp::Lt, start, end);
    let [low, high] = [start, end].map(|bound| emit.cast(bound, counted));
    let ahead = emit.binary(BinaryOp::Sub, high, low);
    let [zero, one, size] = [0, 1, step].map(|number| emit.int(number, counted));
    let count = match step {
        1 => ahead,
        _ => {
            let last = emit.binary(BinaryOp::Sub, ahead, one);
            let last = emit.binary(BinaryOp::Div, last, size);
            emit.binary(BinaryOp::Add, last, one)
        }
    };
    emit.select(has_some, count, zero)
}
