//! Loops that a schedule transforms before it distributes them: tiles, and how often bodies are written.
//!
//! A loop with tiles of `n` iterations becomes two. The outer one takes `n` steps at a time and has all that the
//! schedule says of the loop; the inner one counts from the outer one's index, `0 .. min(n * step, end - index)` by the
//! loop's step. The order of iterations stays as it is, so that there is nothing to prove, and no number wraps around. Where
//! tiles do not fill the loop, the inner one is there twice at last: for whole tiles, and for the one that is shorter.

use std::borrow::Cow;
use std::collections::HashMap;

use kiln_jit_core::ir::{
    BinaryOp, CompareOp, Constant, Control, Function, Inst, InstData, Region, Type, Unroll, Value,
    ValueDef,
};

use crate::affine::Known;
use crate::combine::Combined;
use crate::compute::{Producer, take_out};
use crate::dependence::check_interchange;
use crate::emit::Emit;
use crate::error::DirectiveError;
use crate::interchange::Pair;
use crate::peel::{MAX_PEELED, Peel};
use crate::privatize::privatize;
use crate::program::Program;
use crate::reduce::{Reduced, reduce};
use crate::schedule::{LoopSchedule, Schedule};

/// The most iterations that are executed side by side: each is written out.
const MAX_JAM: u32 = 64;

/// A program whose loops are those that are distributed.
pub(crate) struct Transformed<'p> {
    pub(crate) program: Cow<'p, Program>,
    pub(crate) schedule: Schedule,
    /// By loop: the number of the loop of the program that it was.
    pub(crate) numbers: Vec<usize>,
    /// What loops reduce.
    pub(crate) reduced: Reduced,
    /// What stands behind loops of it.
    pub(crate) combined: Combined,
    /// Loops that write slices of which blocks compute what they read.
    pub(crate) producers: Vec<Producer>,
    /// Loops within tiles, of which the last one may be shorter.
    pub(crate) partial: Vec<Inst>,
}

impl<'p> Transformed<'p> {
    /// The loops of a program as a schedule transforms them, for a launch with such arguments.
    pub(crate) fn of(
        program: &'p Program,
        schedule: &Schedule,
        known: &[Known],
    ) -> Result<Transformed<'p>, DirectiveError> {
        crate::apply::check_loops(program, schedule)?;
        let mut transformed = Transformed {
            program: Cow::Borrowed(program),
            schedule: schedule.clone(),
            numbers: (0..schedule.loops.len()).collect(),
            reduced: Reduced::new(),
            combined: Combined::new(),
            producers: Vec::new(),
            partial: Vec::new(),
        };
        if schedule.loops.iter().any(|held| !held.reduction.is_empty()) {
            transformed.reduced = reduce(transformed.program.to_mut(), schedule)?;
        }
        if schedule.loops.iter().any(|held| !held.computed.is_empty()) {
            let Transformed {
                program, schedule, ..
            } = &mut transformed;
            let (producers, numbers) = take_out(program.to_mut(), schedule, known)?;
            (transformed.producers, transformed.numbers) = (producers, numbers);
        }
        if schedule
            .loops
            .iter()
            .any(|held| !held.privatized.is_empty())
        {
            let Transformed {
                program, schedule, ..
            } = &mut transformed;
            privatize(program.to_mut(), schedule, known)?;
        }
        for number in (0..transformed.schedule.loops.len()).rev() {
            if transformed.schedule.loops[number].interchanged {
                transformed.interchange(number, known)?;
            }
        }
        // Those behind keep their numbers.
        for number in (0..transformed.schedule.loops.len()).rev() {
            let held = transformed.schedule.loops[number];
            transformed.check_counts(number, held)?;
            transformed.peel(number, held)?;
            if let Some(size) = held.tile {
                transformed.tile(number, size)?;
            }
            if held.unroll != Unroll::Auto {
                let inner = number + usize::from(held.tile.is_some());
                let inst = transformed.program.loops[inner].0;
                change_loop(transformed.function(), inst, |_, unroll| {
                    *unroll = held.unroll;
                });
            }
        }
        Ok(transformed)
    }

    fn function(&mut self) -> &mut Function {
        let program = self.program.to_mut();
        &mut program.module.functions[program.kernel]
    }

    /// An error of a clause of a loop.
    fn refuse(&self, inst: Inst, clause: String, problem: &'static str) -> DirectiveError {
        let at = self.program.function().insts[inst].location;
        DirectiveError::Transformation {
            place: self.program.place(at),
            clause,
            problem,
        }
    }

    /// Refuses counts of iterations that are none.
    fn check_counts(&self, number: usize, held: LoopSchedule) -> Result<(), DirectiveError> {
        let inst = self.program.loops[number].0;
        let counts = [
            (
                "peel_first",
                held.peel_first,
                MAX_PEELED,
                "from 1 to 64 iterations are split off",
            ),
            (
                "peel_last",
                held.peel_last,
                MAX_PEELED,
                "from 1 to 64 iterations are split off",
            ),
            (
                "tile",
                held.tile,
                65_536,
                "a tile has from 1 to 65536 iterations",
            ),
            (
                "unroll_and_jam",
                held.jam,
                MAX_JAM,
                "from 1 to 64 iterations are executed side by side, each of which is written out",
            ),
            (
                "unroll",
                match held.unroll {
                    Unroll::By(times) => Some(times),
                    Unroll::Auto | Unroll::Never | Unroll::Full => None,
                },
                1024,
                "a body is written from 1 to 1024 times",
            ),
        ];
        for (clause, count, most, problem) in counts {
            if let Some(count) = count.filter(|count| !(1..=most).contains(count)) {
                return Err(self.refuse(inst, format!("{clause}({count})"), problem));
            }
        }
        Ok(())
    }

    /// Lets the loop directly within one be around it.
    fn interchange(&mut self, number: usize, known: &[Known]) -> Result<(), DirectiveError> {
        let outer = self.program.loops[number].0;
        let pair = Pair::of(&self.program, outer);
        let pair = pair.map_err(|problem| self.refuse(outer, "interchange".to_owned(), problem))?;
        pair.check_variables(&self.program)?;
        let loops = [pair.outer, pair.inner];
        let launch = (known, &self.reduced);
        check_interchange(&self.program, &self.schedule, launch, loops)?;
        pair.write(self.function());
        Ok(())
    }

    /// Splits first and last iterations off.
    fn peel(&mut self, number: usize, held: LoopSchedule) -> Result<(), DirectiveError> {
        let counts = [held.peel_first, held.peel_last];
        let clauses = ["peel_first", "peel_last"].into_iter().zip(counts);
        let mut clauses =
            clauses.filter_map(|(clause, count)| Some(format!("{clause}({})", count?)));
        let Some(clause) = clauses.next() else {
            return Ok(());
        };
        let inst = self.program.loops[number].0;
        if !held.computed.is_empty() {
            let problem = "blocks compute what a turn of the loop reads, and iterations that are split off would find nothing: take \
                           `compute` away, or let the loop be whole";
            return Err(self.refuse(inst, clause, problem));
        }
        let (step, _) = self.steps(inst, &clause, 1)?;
        let mut peel = Peel {
            program: self.program.to_mut(),
            schedule: &mut self.schedule,
            numbers: &mut self.numbers,
            reduced: &mut self.reduced,
            partial: &mut self.partial,
        };
        peel.split(inst, step, counts.map(|count| count.unwrap_or(0)))
    }

    /// Makes two loops of one.
    fn tile(&mut self, number: usize, size: u32) -> Result<(), DirectiveError> {
        let inst = self.program.loops[number].0;
        let (step, span) = self.steps(inst, &format!("tile({size})"), size)?;
        let function = self.function();
        let InstData::For {
            index,
            start,
            end,
            body,
            unroll,
            ..
        } = function.insts[inst].data
        else {
            unreachable!("a schedule's loops are `for`s");
        };
        let (at, ty) = (function.insts[inst].location, function.type_of(index));
        let counted = unsigned(function, index);
        let mut emit = Emit::new(function, at);
        let outer_step = emit.int(span, ty);
        let before = emit.list;
        let own = std::mem::take(&mut function.regions[body].insts);
        let mut emit = Emit::new(function, at);
        let inner_end = end_in_tile(&mut emit, [start, index, end], span, counted);
        let [zero, step] = [0, step].map(|number| emit.int(number, counted));
        let mut of_tile = None;
        let inner = emit.for_([zero, inner_end, step], unroll, |emit, place| {
            let ahead = emit.cast(place, ty);
            of_tile = Some(emit.binary(BinaryOp::Add, index, ahead));
        });
        let outer = emit.list;
        let inner_loop = *outer.last().expect("the loop within is the last one");
        let of_tile = of_tile.expect("the body is written once");
        replace(function, &HashMap::from([(index, of_tile)]), &own);
        function.regions[inner].insts.extend(own);
        function.regions[body].insts = outer;
        function.insts[inst].data = InstData::For {
            index,
            start,
            end,
            step: outer_step,
            body,
            unroll: Unroll::Auto,
        };
        insert_before(function, inst, before);
        self.partial.push(inner_loop);
        let program = self.program.to_mut();
        program
            .loops
            .insert(number + 1, (inner_loop, LoopSchedule::default()));
        self.schedule
            .loops
            .insert(number + 1, LoopSchedule::default());
        self.numbers.insert(number + 1, self.numbers[number]);
        Ok(())
    }

    /// The step of a loop, for a clause, and that of a loop over its tiles of a size.
    fn steps(&self, inst: Inst, clause: &str, size: u32) -> Result<(i128, i128), DirectiveError> {
        let refuse = |problem| Err(self.refuse(inst, clause.to_owned(), problem));
        let function = self.program.function();
        let Control::For { bounds, body, .. } = function.insts[inst].data.control() else {
            unreachable!("a schedule's loops are `for`s");
        };
        let scalar = function.type_of(bounds[2]).as_scalar();
        let scalar = scalar.expect("steps are integers");
        let step = match function.constant(bounds[2]) {
            Some(Constant::Int(step @ 1..)) => step,
            _ => {
                return refuse("the loop does not count up by a literal: write it so that it does");
            }
        };
        let span = step * i128::from(size);
        let bits = scalar.bits() - u32::from(scalar.is_signed_int());
        if span >= 1 << bits {
            return refuse(
                "a step from tile to tile is no number of the index's type: choose smaller tiles",
            );
        }
        if breaks(function, body, 0) {
            return refuse(
                "`break`, or the end of a loop around, is in the loop: test in each iteration whether there is something \
                 to do",
            );
        }
        Ok((step, span))
    }
}

/// Where the loop within a tile ends that begins with `index`: all of the tile where tiles fill the loop.
fn end_in_tile(
    emit: &mut Emit<'_>,
    [start, index, end]: [Value; 3],
    span: i128,
    counted: Type,
) -> Value {
    let most = emit.int(span, counted);
    let all = emit.number(end).zip(emit.number(start));
    if all.is_some_and(|(end, start)| (end - start) % span == 0) {
        return most;
    }
    let ahead = emit.binary(BinaryOp::Sub, end, index);
    let ahead = emit.cast(ahead, counted);
    emit.binary(BinaryOp::Min, most, ahead)
}

/// Makes two of a loop within a tile that may be shorter: where it is not, the number of its turns is known.
pub(crate) fn split_off_whole(function: &mut Function, inst: Inst) {
    let Control::For { bounds, body, .. } = function.insts[inst].data.control() else {
        return;
    };
    let mut meets = false;
    function.walk(body, &mut |_, inner| {
        meets |= function.insts[inner].data.is_barrier()
    });
    let Some([most, ahead]) = least_of(function, bounds[1]).filter(|_| !meets) else {
        return;
    };
    let (region, at) = (region_of(function, inst), function.insts[inst].location);
    let whole = function.copy_inst(inst).inst;
    change_loop(function, whole, |end, _| *end = most);
    // The last tile's code is to be short.
    change_loop(function, inst, |_, unroll| *unroll = Unroll::Never);
    let mut emit = Emit::new(function, at);
    let is_whole = emit.compare(CompareOp::Ge, ahead, most);
    let [then, otherwise] = [whole, inst].map(|held| emit.region(|inner| inner.list.push(held)));
    emit.if_else(is_whole, then, otherwise);
    let list = emit.list;
    let insts = &mut function.regions[region].insts;
    if let Some(place) = insts.iter().position(|&held| held == inst) {
        insts.splice(place..=place, list);
    }
}

/// The two values of which another one is the smaller.
fn least_of(function: &Function, value: Value) -> Option<[Value; 2]> {
    let ValueDef::Inst(made) = function.values[value].def else {
        return None;
    };
    match function.insts[made].data {
        InstData::Binary {
            op: BinaryOp::Min,
            args,
        } => Some(args),
        _ => None,
    }
}

/// Changes where a `for` ends, or how often its body is written.
fn change_loop(function: &mut Function, inst: Inst, change: impl FnOnce(&mut Value, &mut Unroll)) {
    if let InstData::For { end, unroll, .. } = &mut function.insts[inst].data {
        change(end, unroll);
    }
}

/// Whether a loop with this body is ended from within, or one around it ended or continued.
pub(crate) fn breaks(function: &Function, region: Region, depth: u32) -> bool {
    function.regions[region].insts.iter().any(|&inst| {
        let data = &function.insts[inst].data;
        let own = match data.control() {
            Control::Leave { depth: left, again } => left > depth || left == depth && !again,
            _ => false,
        };
        let inner = depth + u32::from(data.is_loop());
        let mut regions = data.regions().into_iter();
        own || regions.any(|region| breaks(function, region, inner))
    })
}

/// The type without a sign that has the size of an integer.
pub(crate) fn unsigned(function: &Function, value: Value) -> Type {
    let scalar = function.type_of(value).as_scalar();
    scalar.map_or(Type::U64, |scalar| Type::scalar(scalar.unsigned()))
}

/// Puts values in the place of others in instructions and all within.
pub(crate) fn replace(function: &mut Function, new: &HashMap<Value, Value>, insts: &[Inst]) {
    let mut open = insts.to_vec();
    while let Some(inst) = open.pop() {
        let data = &mut function.insts[inst].data;
        data.map_operands(|value| new.get(&value).copied().unwrap_or(value));
        for inner in data.regions() {
            open.extend(function.regions[inner].insts.iter().copied());
        }
    }
}

/// Puts instructions before another one.
pub(crate) fn insert_before(function: &mut Function, inst: Inst, list: Vec<Inst>) {
    let region = region_of(function, inst);
    let insts = &mut function.regions[region].insts;
    let place = insts.iter().position(|&held| held == inst).unwrap_or(0);
    insts.splice(place..place, list);
}

/// The region that holds an instruction.
pub(crate) fn region_of(function: &Function, inst: Inst) -> Region {
    let mut found = function.body;
    function.for_each_inst(|region, held| {
        if held == inst {
            found = region;
        }
    });
    found
}
