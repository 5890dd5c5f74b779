//! Running values: variables that an iteration combines with a value and hands on to the next one, computed by the threads of a
//! block together.
//!
//! In a loop over threads all threads of the block take each turn, so that iterations of one batch are there at once. Before anything
//! reads the variable, each thread combines the values of those before it (`threads` says how) with what the batches before have
//! given. The variable has then what the sequential program has there, and its own statement stays as it is. Floats are combined in
//! another order, and rounded so.

mod threads;

use std::collections::HashMap;

use kiln_jit_core::ir::{
    BinaryOp, Constant, Function, Inst, InstData, Read, Region, Scalar, Source, Type, Value,
    ValueDef, Var, VarUse,
};

use self::threads::Way;
use crate::emit::Emit;
use crate::error::DirectiveError;
use crate::jam::holds;
use crate::private::Body;
use crate::program::Program;
use crate::schedule::{LoopSchedule, OverThreads, Schedule};
use crate::transform::{insert_before, region_of, replace};
use crate::uniform::{base_of, written};

/// A running value of a loop, at the barrier in whose place threads compute it.
#[derive(Debug)]
pub(crate) struct Scan {
    /// The variable of the program.
    var: Var,
    op: BinaryOp,
    ty: Type,
    /// What the thread's iteration combines with it.
    own: Var,
    /// What all batches before have given.
    before: Var,
    way: Way,
}

/// Puts barriers into a loop that has running values, in whose places threads compute them.
pub(crate) fn insert(
    program: &mut Program,
    schedule: &Schedule,
    number: usize,
) -> Result<Vec<(Inst, Scan)>, DirectiveError> {
    let inst = program.loops[number].0;
    check(program, schedule, (inst, schedule.loops[number]))?;
    let body = program.function().insts[inst].data.regions()[0];
    let carried = Body::new(program, (inst, ""), body).carried();
    if carried.is_empty() {
        let problem = "no variable is handed on from iteration to iteration: take the clause away";
        return Err(refusal(program, inst, problem));
    }
    let mut found = Vec::new();
    for (var, set) in carried {
        let search = Search {
            program,
            body,
            var,
            set,
        };
        found.push(search.running()?);
    }
    let write = |running: Running| running.write(program, schedule, (inst, body));
    Ok(found.into_iter().map(write).collect())
}

fn refusal(program: &Program, at: Inst, problem: &'static str) -> DirectiveError {
    DirectiveError::Scan {
        place: program.place(program.function().insts[at].location),
        problem,
    }
}

/// Refuses loops whose batches threads do not take together.
fn check(
    program: &Program,
    schedule: &Schedule,
    (inst, held): (Inst, LoopSchedule),
) -> Result<(), DirectiveError> {
    let partition = held.partition;
    if partition.over_blocks.is_some() || partition.over_threads != Some(OverThreads::Threads) {
        let problem = "the threads of one block compute them: let the loop have `over_thread` and neither `over_tblock`, `over_warp` nor \
                       `over_lane`";
        return Err(refusal(program, inst, problem));
    }
    let function = program.function();
    let jammed = program.loops.iter().zip(&schedule.loops);
    let mut jammed = jammed.filter(|(_, held)| held.jammed() > 1);
    let is_in = |around: Inst| around == inst || contains(function, around, inst);
    if jammed.any(|(&(around, _), _)| is_in(around)) {
        let problem = "iterations of the loop, or of one around, are executed side by side: take `coarsen` and `unroll_and_jam` away";
        return Err(refusal(program, inst, problem));
    }
    Ok(())
}

/// Whether an instruction is within another one.
fn contains(function: &Function, outer: Inst, inner: Inst) -> bool {
    let mut found = false;
    for region in function.insts[outer].data.regions() {
        function.walk(region, &mut |_, inst| found |= inst == inner);
    }
    found
}

const NOT_RUNNING: &str = "a variable that iterations hand on is combined with a value once in each, by `+`, `*`, `min`, `max`, `&`, `|` or `^`, \
                           under no condition and in no loop within: write `sum += x[i]` so, or declare what is not handed on in the loop";

const NOT_BEFORE: &str = "the running value is read before the statement that combines it, and the other value is computed of memory that the \
                          region writes, or of variables: let the statement come first, or the value be computed before";

struct Search<'p> {
    program: &'p Program,
    body: Region,
    var: Var,
    /// A statement that assigns the variable.
    set: Inst,
}

/// A variable that is combined with a value in each iteration.
struct Running {
    var: Var,
    op: BinaryOp,
    /// The value.
    value: Value,
    /// Where the variable is read to be combined, and the operation.
    old: Inst,
    combine: Inst,
    /// What the variable is to be right before.
    point: Inst,
    /// What the value is computed by behind that.
    late: Vec<Inst>,
}

impl Search<'_> {
    fn refuse(&self, at: Inst, problem: &'static str) -> DirectiveError {
        refusal(self.program, at, problem)
    }

    fn insts(&self) -> &[Inst] {
        &self.program.function().regions[self.body].insts
    }

    fn position(&self, inst: Inst) -> Option<usize> {
        self.insts().iter().position(|&held| held == inst)
    }

    fn made_by(&self, value: Value) -> Option<Inst> {
        match self.program.function().values[value].def {
            ValueDef::Inst(inst) => Some(inst),
            ValueDef::Param(_) | ValueDef::Index(_) => None,
        }
    }

    fn reads(&self, inst: Inst) -> bool {
        let function = self.program.function();
        holds(function, inst, |data| {
            data.var_use() == Some(VarUse::Get(self.var))
        })
    }

    /// How the loop combines the variable.
    fn running(&self) -> Result<Running, DirectiveError> {
        let (op, old, value, combine) = self
            .statement()
            .ok_or_else(|| self.refuse(self.set, NOT_RUNNING))?;
        let (point, late) = self.point((old, combine), value)?;
        Ok(Running {
            var: self.var,
            op,
            value,
            old,
            combine,
            point,
            late,
        })
    }

    /// Where the variable is to be what those before give, as early as can be so that no address is computed before it and used
    /// behind; and what has to be moved there, of what the value is computed by.
    fn point(
        &self,
        (old, combine): (Inst, Inst),
        value: Value,
    ) -> Result<(Inst, Vec<Inst>), DirectiveError> {
        let insts = self.insts();
        let mut all = insts.iter().copied();
        let first = all.position(|inst| inst == combine || inst != old && self.reads(inst));
        let first = first.unwrap_or(0);
        let behind = self.made_by(value).and_then(|inst| self.position(inst));
        let behind = behind.map_or(0, |place| place + 1);
        if behind <= first {
            return Ok((insts[behind], Vec::new()));
        }
        for from in [0, first] {
            let mut late = Vec::new();
            if self.gather(value, from, &mut late) {
                return Ok((insts[from], late));
            }
        }
        Err(self.refuse(insts[first], NOT_BEFORE))
    }

    /// The only statement that assigns the variable: the operation, the read, the other value, and the instruction.
    fn statement(&self) -> Option<(BinaryOp, Inst, Value, Inst)> {
        let function = self.program.function();
        let mut sets = 0;
        function.walk(self.body, &mut |_, inst| {
            let data = &function.insts[inst].data;
            sets +=
                usize::from(matches!(data.var_use(), Some(VarUse::Set(var, _)) if var == self.var));
        });
        let Some(VarUse::Set(_, result)) = function.insts[self.set].data.var_use() else {
            return None;
        };
        let combine = self.made_by(result)?;
        let InstData::Binary { op, args } = function.insts[combine].data else {
            return None;
        };
        identity(op, function.type_of(result).as_scalar()?)?;
        let is_here = self.position(self.set).is_some() && self.position(combine).is_some();
        let both = [(args[0], args[1]), (args[1], args[0])];
        let (old, value) = both.into_iter().find_map(|(old, value)| {
            let read = self.made_by(old)?;
            let is_old = function.insts[read].data.var_use() == Some(VarUse::Get(self.var));
            let is_it = is_old && self.position(read).is_some() && uses(function, old) == 1;
            is_it.then_some((read, value))
        })?;
        (sets == 1 && is_here).then_some((op, old, value, combine))
    }

    /// Gathers what a value is computed by in the loop from a place on; whether that may come before.
    fn gather(&self, value: Value, from: usize, late: &mut Vec<Inst>) -> bool {
        let Some(inst) = self.made_by(value) else {
            return true;
        };
        let is_late = self.position(inst).is_some_and(|place| place >= from);
        if !is_late || late.contains(&inst) {
            return true;
        }
        let mut operands = Vec::new();
        let data = &self.program.function().insts[inst].data;
        data.for_each_operand(|operand| operands.push(operand));
        let can = self.may_come_before(data)
            && operands
                .into_iter()
                .all(|operand| self.gather(operand, from, late));
        late.push(inst);
        can
    }

    /// Whether an operation gives the same before all that the iteration does.
    fn may_come_before(&self, data: &InstData) -> bool {
        let function = self.program.function();
        let facts = data.facts(&self.program.module.intrinsics);
        if facts.writes || facts.assumes || facts.steers || facts.meets {
            return false;
        }
        match facts.source {
            Source::Operands => true,
            Source::Memory { ptr, read } => {
                let base = base_of(function, ptr);
                let is_param = matches!(function.values[base].def, ValueDef::Param(_));
                read == Read::Plain && is_param && !written(self.program).contains(&base)
            }
            _ => false,
        }
    }
}

/// How many operands a value is.
fn uses(function: &Function, value: Value) -> usize {
    let mut count = 0;
    function.for_each_inst(|_, inst| {
        let data = &function.insts[inst].data;
        data.for_each_operand(|operand| count += usize::from(operand == value));
    });
    count
}

/// What an operation combines with any value to that value, of those whose order of operands does not matter.
fn identity(op: BinaryOp, scalar: Scalar) -> Option<Constant> {
    let is_int = scalar.is_int();
    let (low, high) = match is_int {
        true => crate::affine::limits(scalar),
        false => (0, 0),
    };
    let one = if scalar.is_signed_int() { -1 } else { high };
    Some(match (op, scalar.is_float()) {
        (BinaryOp::Add, true) => Constant::Float(-0.0),
        (BinaryOp::Mul, true) => Constant::Float(1.0),
        // Of two floats the other one is taken if one is no number.
        (BinaryOp::Min | BinaryOp::Max, true) => Constant::Float(f64::NAN),
        (_, false) if !is_int => return None,
        (BinaryOp::Add | BinaryOp::Or | BinaryOp::Xor, false) => Constant::Int(0),
        (BinaryOp::Mul, false) => Constant::Int(1),
        (BinaryOp::Min, false) => Constant::Int(high),
        (BinaryOp::Max, false) => Constant::Int(low),
        (BinaryOp::And, false) => Constant::Int(one),
        _ => return None,
    })
}

impl Running {
    /// Puts a barrier before what needs the value, and around the loop what the first iteration finds and what the last one
    /// leaves.
    fn write(
        self,
        program: &mut Program,
        schedule: &Schedule,
        (inst, body): (Inst, Region),
    ) -> (Inst, Scan) {
        let scan = self.scan(program, schedule, inst);
        let function = &mut program.module.functions[program.kernel];
        let at = function.insts[inst].location;
        let mut emit = Emit::new(function, at);
        let first = emit.get(self.var);
        emit.set(scan.before, first);
        let none = scan.identity(&mut emit);
        emit.set(scan.own, none);
        let before = emit.list;
        let mut emit = Emit::new(function, at);
        let last = emit.get(scan.before);
        emit.set(self.var, last);
        let behind = emit.list;
        insert_before(function, inst, before);
        let region = region_of(function, inst);
        let insts = &mut function.regions[region].insts;
        let place = insts
            .iter()
            .position(|&held| held == inst)
            .map_or(0, |place| place + 1);
        insts.splice(place..place, behind);
        let barrier = self.insert(function, body, &scan);
        (barrier, scan)
    }

    /// Declares what threads need.
    fn scan(&self, program: &mut Program, schedule: &Schedule, inst: Inst) -> Scan {
        let around = program.loops.iter().zip(&schedule.loops);
        let around = around.filter(|&(&(outer, _), held)| {
            held.partition.over_threads == Some(OverThreads::Threads)
                && contains(program.function(), outer, inst)
        });
        let level = around.count();
        let function = &mut program.module.functions[program.kernel];
        let ty = function.type_of(self.value);
        let mut emit = Emit::new(function, function.location);
        let (own, before) = (emit.var("scan.own", ty), emit.var("scan.before", ty));
        Scan {
            var: self.var,
            op: self.op,
            ty,
            own,
            before,
            way: Way::of(program, &schedule.threads, (level, ty)),
        }
    }

    /// Puts what sets the thread's own value, and a barrier, before the point; and reads the variable behind that.
    fn insert(&self, function: &mut Function, body: Region, scan: &Scan) -> Inst {
        let at = function.insts[self.combine].location;
        let mut list = self.late.clone();
        let mut emit = Emit::new(function, at);
        emit.set(scan.own, self.value);
        list.append(&mut emit.list);
        let barrier = function.new_inst(InstData::Barrier, Type::UNIT, at);
        list.push(barrier);
        let mut emit = Emit::new(function, at);
        let fresh = emit.get(self.var);
        let read = emit.list;
        if let Some(old) = function.insts[self.old].result {
            replace(function, &HashMap::from([(old, fresh)]), &[self.combine]);
        }
        let insts = std::mem::take(&mut function.regions[body].insts);
        let mut new = Vec::with_capacity(insts.len() + list.len() + 1);
        for inst in insts {
            if inst == self.point {
                new.append(&mut list);
            }
            if inst == self.combine {
                new.extend(read.iter().copied());
            }
            if inst != self.old && !self.late.contains(&inst) {
                new.push(inst);
            }
        }
        function.regions[body].insts = new;
        barrier
    }
}
