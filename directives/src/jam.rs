//! Unroll and jam: iterations of a loop side by side, statement by statement.
//!
//! Of a loop that counts `start .. end` without a sign by a step that is above 0, as all that `shares.rs` writes do,
//! groups of iterations become one turn of another loop each: what is in the body is written once for each iteration,
//! one beside the other. A loop within whose bounds are the same for all is executed once for all; so are barriers, and
//! what fills shared memory. An `if` that holds a loop and whose condition is not the same for all is cut in two: where
//! it holds for all they go on side by side, elsewhere so, too, each behind its own condition within the loops, so that
//! loops in loops have the code of all iterations twice, not once for each choice of them. Iterations that do not fill a group are
//! executed by the loop as it was, or, where that is possible ([`edge`](crate::edge)), by a group of which some copies are
//! no iterations: these execute the last one of the thread, and their guards do not hold.

use std::collections::{HashMap, HashSet};

use kiln_jit_core::ir::{
    BinaryOp, CompareOp, Control, FuncId, Function, Inst, InstData, Module, Read, Region, Source,
    Type, Unroll, Value, Var, VarUse,
};

use crate::emit::Emit;
use crate::error::DirectiveError;
use crate::program::Program;
use crate::shares::ceil_div;
use crate::transform::{region_of, replace};

/// A loop of what a thread executes, whose iterations are executed side by side.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Jam {
    /// The `for`.
    pub(crate) inst: Inst,
    /// How many iterations are executed side by side.
    pub(crate) count: u32,
    /// What is 0 in the loop, and in the copy of an iteration is its number.
    pub(crate) number: Option<Value>,
    /// What holds in the loop, and in a copy tells whether it is an iteration, if groups need not be full.
    pub(crate) guard: Option<Value>,
    /// Whether a thread has one group at most.
    pub(crate) once: bool,
}

/// A kernel in which loops are jammed.
pub(crate) struct Jammer<'m> {
    pub(crate) program: &'m Program,
    pub(crate) module: &'m mut Module,
    pub(crate) kernel: FuncId,
    /// What is executed once for all iterations, as the first one has it.
    pub(crate) once: HashSet<Inst>,
    /// `if`s whose `else` is one other `if`, and does what is to be done whether the condition holds or not.
    pub(crate) either: HashSet<Inst>,
}

/// What an iteration after the first has in the place of the first one's values and variables.
#[derive(Clone, Default)]
struct Own {
    values: HashMap<Value, Value>,
    vars: HashMap<Var, Var>,
}

/// What the copies in a group have: their iterations, their numbers, and what tells whether they are iterations, if not all
/// are.
#[derive(Default)]
struct Copies {
    iterations: Vec<Value>,
    numbers: Vec<Value>,
    guards: Vec<Option<Value>>,
}

impl Copies {
    /// Writes them at the start of a group.
    fn write(
        &mut self,
        emit: &mut Emit<'_>,
        (jam, group): (&Jam, Value),
        [start, step]: [Value; 2],
        [turns, by]: [Value; 2],
    ) {
        let ty = emit.function.type_of(by);
        let first = emit.binary(BinaryOp::Mul, group, by);
        let count = i128::from(jam.count);
        let is_full = emit.number(turns).is_some_and(|turns| turns % count == 0);
        let left = jam
            .guard
            .filter(|_| !is_full)
            .map(|_| emit.binary(BinaryOp::Sub, turns, first));
        for number in 0..jam.count {
            let mut ahead = emit.int(number.into(), ty);
            let mut guard = None;
            // The first one of a group is an iteration.
            if let Some(left) = left.filter(|_| number > 0) {
                guard = Some(emit.compare(CompareOp::Lt, ahead, left));
                let one = emit.int(1, ty);
                let last = emit.binary(BinaryOp::Sub, left, one);
                ahead = emit.binary(BinaryOp::Min, ahead, last);
            }
            let turn = emit.binary(BinaryOp::Add, first, ahead);
            let ahead = emit.binary(BinaryOp::Mul, turn, step);
            self.iterations
                .push(emit.binary(BinaryOp::Add, start, ahead));
            self.numbers.push(emit.int(number.into(), Type::U32));
            self.guards.push(guard);
        }
    }
}

impl Jammer<'_> {
    fn function(&mut self) -> &mut Function {
        &mut self.module.functions[self.kernel]
    }

    fn refuse(&self, inst: Inst, count: usize, problem: &'static str) -> DirectiveError {
        let at = self.module.functions[self.kernel].insts[inst].location;
        DirectiveError::Transformation {
            place: self.program.place(at),
            clause: format!("unroll_and_jam({count})"),
            problem,
        }
    }

    /// Jams a loop; those within have been.
    pub(crate) fn jam(&mut self, jam: Jam) -> Result<(), DirectiveError> {
        let InstData::For {
            index,
            start,
            end,
            step,
            body,
            unroll,
        } = self.function().insts[jam.inst].data
        else {
            unreachable!("a loop of what a thread executes is a `for`");
        };
        // Before the body is changed.
        let rest = jam.guard.is_none().then(|| self.copied(jam.inst));
        let function = self.function();
        let at = function.insts[jam.inst].location;
        let ty = function.type_of(index);
        let region = region_of(function, jam.inst);
        let mut emit = Emit::new(function, at);
        let [zero, one] = [0, 1].map(|number| emit.int(number, ty));
        let by = emit.int(jam.count.into(), ty);
        let turns = turns(&mut emit, [start, end, step], ty);
        let groups = match jam.guard {
            Some(_) => ceil_div(&mut emit, turns, by, ty),
            None => emit.binary(BinaryOp::Div, turns, by),
        };
        let mut copies = Copies::default();
        let mut write = |emit: &mut Emit<'_>, group| {
            copies.write(emit, (&jam, group), [start, step], [turns, by]);
        };
        let group_body = match jam.once {
            true => {
                let has_one = emit.compare(CompareOp::Lt, zero, groups);
                let body = emit.region(|emit| write(emit, zero));
                emit.if_(has_one, body);
                body
            }
            false => emit.for_([zero, groups, one], unroll, write),
        };
        let fills = |turns: i128| turns % i128::from(jam.count) == 0;
        let has_rest = rest.filter(|_| !emit.number(turns).is_some_and(fills));
        if let Some(rest) = has_rest {
            let from = rest_from(&mut emit, [start, end, step], [turns, groups, by]);
            emit.list.push(rest);
            if let InstData::For { start, unroll, .. } = &mut emit.function.insts[rest].data {
                (*start, *unroll) = (from, Unroll::Auto);
            }
        }
        let list = emit.list;
        self.copies_in(jam, body, &copies)?;
        let function = self.function();
        let jammed = std::mem::take(&mut function.regions[body].insts);
        function.regions[group_body].insts.extend(jammed);
        let insts = &mut function.regions[region].insts;
        let place = insts.iter().position(|&held| held == jam.inst);
        let place = place.expect("the loop is in its region");
        insts.splice(place..=place, list);
        Ok(())
    }

    /// Writes what is in a loop's body for all copies.
    fn copies_in(&mut self, jam: Jam, body: Region, copies: &Copies) -> Result<(), DirectiveError> {
        let function = self.function();
        let Some(index) = function.insts[jam.inst].data.index() else {
            unreachable!("a loop of what a thread executes is a `for`");
        };
        let own = function.regions[body].insts.clone();
        let first = HashMap::from([(index, copies.iterations[0])]);
        replace(function, &first, &own);
        let mut others = self.others(jam, copies);
        self.region(body, &mut others)
    }

    /// What iterations after the first have of their own.
    fn others(&mut self, jam: Jam, copies: &Copies) -> Vec<Own> {
        let body = self.function().insts[jam.inst].data.regions()[0];
        let vars = self.own_variables(body, jam.count);
        let first = copies.iterations[0];
        let others = vars.into_iter().enumerate().map(|(number, vars)| {
            let number = number + 1;
            let mut values = HashMap::from([(first, copies.iterations[number])]);
            values.extend(jam.number.map(|held| (held, copies.numbers[number])));
            values.extend(jam.guard.zip(copies.guards[number]));
            Own { values, vars }
        });
        others.collect()
    }

    /// The variables of iterations after the first, for those that an iteration assigns.
    fn own_variables(&mut self, body: Region, count: u32) -> Vec<HashMap<Var, Var>> {
        let function = &mut self.module.functions[self.kernel];
        let mut assigned = Vec::new();
        function.walk(body, &mut |_, inst| {
            if let Some(VarUse::Set(var, _)) = function.insts[inst].data.var_use()
                && !assigned.contains(&var)
            {
                assigned.push(var);
            }
        });
        let mut own = || -> HashMap<Var, Var> {
            let copy = |var: &Var| {
                let data = function.vars[*var].clone();
                (*var, function.vars.push(data))
            };
            assigned.iter().map(copy).collect()
        };
        (1..count).map(|_| own()).collect()
    }

    /// A copy of an instruction, of which the same is executed once for all.
    fn copied(&mut self, inst: Inst) -> Inst {
        let copy = self.function().copy_inst(inst);
        let once = copy.insts.iter().filter(|(old, _)| self.once.contains(old));
        let once: Vec<Inst> = once.map(|(_, new)| *new).collect();
        self.once.extend(once);
        let either = copy
            .insts
            .iter()
            .filter(|(old, _)| self.either.contains(old));
        let either: Vec<Inst> = either.map(|(_, new)| *new).collect();
        self.either.extend(either);
        copy.inst
    }

    /// A copy of an instruction for another iteration.
    fn copied_for(&mut self, inst: Inst, own: &mut Own) -> Inst {
        let function = self.function();
        let copy = function.copy_inst(inst);
        for &inner in copy.insts.values() {
            let data = &mut function.insts[inner].data;
            data.map_operands(|value| own.values.get(&value).copied().unwrap_or(value));
            data.map_vars(|var| own.vars.get(&var).copied().unwrap_or(var));
        }
        own.values.extend(copy.values);
        copy.inst
    }

    /// Writes what is in a region for the other iterations, too.
    fn region(&mut self, region: Region, others: &mut [Own]) -> Result<(), DirectiveError> {
        let insts = self.function().regions[region].insts.clone();
        let mut list = Vec::with_capacity(insts.len());
        for inst in insts {
            self.inst(inst, others, &mut list)?;
        }
        self.function().regions[region].insts = list;
        Ok(())
    }

    fn inst(
        &mut self,
        inst: Inst,
        others: &mut [Own],
        list: &mut Vec<Inst>,
    ) -> Result<(), DirectiveError> {
        let function = &self.module.functions[self.kernel];
        let data = function.insts[inst].data.clone();
        let is_own = |value: Value| others.iter().any(|own| own.values.contains_key(&value));
        let goes_along = match data.control() {
            Control::For { bounds, body, .. } => {
                !bounds.into_iter().any(is_own) && !leaves(function, body, None)
            }
            Control::If { cond, .. } => !is_own(cond),
            _ => false,
        };
        if self.once.contains(&inst) || data.is_barrier() {
            list.push(inst);
        } else if goes_along {
            for inner in data.regions() {
                self.region(inner, others)?;
            }
            list.push(inst);
        } else if let Control::If {
            cond,
            then_region,
            else_region,
        } = data.control()
            && holds(function, inst, InstData::is_loop)
            && !holds(function, inst, InstData::is_barrier)
            && !leaves(function, then_region, Some(0))
            && !else_region.is_some_and(|region| leaves(function, region, Some(0)))
        {
            self.where_all(inst, (cond, then_region), others, list)?;
        } else {
            self.copies(inst, others, list)?;
        }
        Ok(())
    }

    /// An `if` that holds for some iterations: side by side where it does for all, else each guarded on its own, or one
    /// after the other where what it holds cannot be cut.
    fn where_all(
        &mut self,
        inst: Inst,
        (cond, then_region): (Value, Region),
        others: &mut [Own],
        list: &mut Vec<Inst>,
    ) -> Result<(), DirectiveError> {
        let cut = self.guarded_within(inst);
        let one_by_one = match cut {
            Some((_, region)) => {
                self.region(region, &mut others.to_vec())?;
                Vec::new()
            }
            None => {
                let mut insts = vec![self.copied(inst)];
                for own in &mut *others {
                    insts.push(self.copied_for(inst, &mut own.clone()));
                }
                insts
            }
        };
        self.region(then_region, others)?;
        let function = self.function();
        let at = function.insts[inst].location;
        let of_all = |cond: Value| {
            let own = |own: &Own| own.values.get(&cond).copied().unwrap_or(cond);
            std::iter::once(cond)
                .chain(others.iter().map(own))
                .collect::<Vec<_>>()
        };
        let mut emit = Emit::new(function, at);
        let all = emit
            .all(&of_all(cond))
            .expect("there is the first iteration");
        let some = cut.map(|(some, region)| (emit.any(&of_all(some)), region));
        let else_region = emit.region(|emit| {
            emit.list.extend(one_by_one);
            if let Some((Some(some), region)) = some {
                emit.if_(some, region);
            }
        });
        emit.if_else(all, then_region, else_region);
        let written = emit.list;
        self.either
            .extend(written.last().copied().filter(|_| cut.is_some()));
        list.extend(written);
        Ok(())
    }

    /// What an `if` does, with the condition around what is in its loops instead of around them, so that it is right
    /// whichever iterations the condition holds for, and what holds where there is something to do. None if it cannot
    /// be cut so.
    fn guarded_within(&mut self, inst: Inst) -> Option<(Value, Region)> {
        let is_cut = self.either.contains(&inst);
        let copy = self.copied(inst);
        let function = self.function();
        let Control::If {
            cond,
            then_region,
            else_region,
        } = function.insts[copy].data.control()
        else {
            return None;
        };
        if let Some(region) = else_region {
            let inner = function.regions[region].insts.last().filter(|_| is_cut)?;
            let Control::If {
                cond, then_region, ..
            } = function.insts[*inner].data.control()
            else {
                return None;
            };
            return Some((cond, then_region));
        }
        let mut cut = Cut {
            jammer: self,
            cond,
            behind: HashSet::new(),
        };
        cut.region(then_region).then_some((cond, then_region))
    }

    /// An instruction for each iteration, unless that would give the same.
    fn copies(
        &mut self,
        inst: Inst,
        others: &mut [Own],
        list: &mut Vec<Inst>,
    ) -> Result<(), DirectiveError> {
        let function = &self.module.functions[self.kernel];
        let data = &function.insts[inst].data;
        let count = others.len() + 1;
        if data.is_terminator()
            || data
                .regions()
                .into_iter()
                .any(|region| leaves(function, region, Some(u32::from(data.is_loop()))))
        {
            return Err(self.refuse(
                inst,
                count,
                "`continue`, `break` or `return` ends an iteration, and others are executed beside it: put what follows \
                 into an `if`",
            ));
        }
        let has_meeting = holds(function, inst, InstData::is_barrier);
        if has_meeting {
            return Err(self.refuse(
                inst,
                count,
                "a barrier, or a loop that stages slices, is in a loop or `if` that is not the same for iterations side by \
                 side: let its bounds or condition be the same for all",
            ));
        }
        list.push(inst);
        if self.is_for_all(inst, others) {
            return Ok(());
        }
        for own in others {
            list.push(self.copied_for(inst, own));
        }
        Ok(())
    }

    /// Whether an instruction gives other iterations what it gives the first one, and does nothing besides.
    fn is_for_all(&self, inst: Inst, others: &[Own]) -> bool {
        let data = &self.module.functions[self.kernel].insts[inst].data;
        let facts = data.facts(&self.module.intrinsics);
        let mut same = data.regions().is_empty() && !facts.writes;
        for own in others {
            data.for_each_operand(|value| same &= !own.values.contains_key(&value));
            if let Some(used) = data.var_use() {
                same &= !own.vars.contains_key(&used.var());
            }
        }
        // Copies stand beside each other, so that nothing is written between.
        let is_same = match facts.source {
            Source::None | Source::Operands | Source::Variable(_) => true,
            Source::Memory { read, .. } => read == Read::Plain,
            Source::Row(_) | Source::Own | Source::Execution | Source::Callee => false,
        };
        same && is_same
    }
}

/// A condition on the way into the loops that it is around.
struct Cut<'j, 'm> {
    jammer: &'j mut Jammer<'m>,
    cond: Value,
    /// What is computed where the condition holds, and not to be seen elsewhere.
    behind: HashSet<Value>,
}

impl Cut<'_, '_> {
    /// Puts the condition around what is in a region and in its loops; whether that can be.
    fn region(&mut self, region: Region) -> bool {
        let function = self.jammer.function();
        let insts = std::mem::take(&mut function.regions[region].insts);
        let (mut list, mut run) = (Vec::new(), Vec::new());
        let mut in_run = HashSet::new();
        for inst in insts {
            if self.uses(inst, &self.behind) {
                return false;
            }
            let is_behind = self.uses(inst, &in_run);
            let function = self.jammer.function();
            let data = function.insts[inst].data.clone();
            if let Control::For { bounds, body, .. } = data.control()
                && !is_behind
                // A step of 0 is none where the condition does not hold.
                && function.constant(bounds[2]).is_some()
                && !leaves(function, body, None)
            {
                self.put(&mut list, std::mem::take(&mut run));
                self.behind.extend(in_run.drain());
                if !self.region(body) {
                    return false;
                }
                let data = &mut self.jammer.function().insts[inst].data;
                if let InstData::For { unroll, .. } = data {
                    // The edge's code is to be short.
                    *unroll = Unroll::Never;
                }
                list.push(inst);
            } else if holds(function, inst, InstData::is_loop) {
                return false;
            } else if !is_behind && self.is_open(&data) {
                list.push(inst);
            } else {
                in_run.extend(self.jammer.function().insts[inst].result);
                run.push(inst);
            }
        }
        self.put(&mut list, run);
        self.behind.extend(in_run);
        self.jammer.function().regions[region].insts = list;
        true
    }

    /// Puts the condition around instructions.
    fn put(&mut self, list: &mut Vec<Inst>, run: Vec<Inst>) {
        let Some(&first) = run.first() else { return };
        let cond = self.cond;
        let function = self.jammer.function();
        let at = function.insts[first].location;
        let mut emit = Emit::new(function, at);
        emit.where_(Some(cond), |emit| emit.list.extend(run));
        list.append(&mut emit.list);
    }

    /// Whether an operation may be executed where the condition does not hold: it computes with values alone.
    fn is_open(&self, data: &InstData) -> bool {
        let facts = data.facts(&self.jammer.module.intrinsics);
        let indexes = matches!(
            data,
            InstData::SliceIndex { .. } | InstData::ElementPtr { .. }
        );
        // An index that was proved is one where the condition holds.
        let pure = !facts.reads && !facts.writes && !facts.assumes && !facts.steers && !facts.meets;
        let of_operands = matches!(facts.source, Source::Operands);
        of_operands && pure && facts.check.is_none() && !indexes
    }

    /// Whether an instruction, or one within, uses one of some values.
    fn uses(&self, inst: Inst, values: &HashSet<Value>) -> bool {
        let function = &self.jammer.module.functions[self.jammer.kernel];
        let data = &function.insts[inst].data;
        let mut found = false;
        data.for_each_operand(|operand| found |= values.contains(&operand));
        let within = |region: Region| {
            let mut insts = function.regions[region].insts.iter();
            insts.any(|&inner| self.uses(inner, values))
        };
        found || data.regions().into_iter().any(within)
    }
}

/// Where the iterations begin that fill no group; where there are none, at the end, as what is behind the groups may be
/// no number of the type.
fn rest_from(
    emit: &mut Emit<'_>,
    [start, end, step]: [Value; 3],
    [turns, groups, by]: [Value; 3],
) -> Value {
    let done = emit.binary(BinaryOp::Mul, groups, by);
    let ahead = emit.binary(BinaryOp::Mul, done, step);
    let behind = emit.binary(BinaryOp::Add, start, ahead);
    let some = emit.compare(CompareOp::Lt, done, turns);
    emit.select(some, behind, end)
}

/// How many turns a loop has whose step is above 0.
fn turns(emit: &mut Emit<'_>, [start, end, step]: [Value; 3], ty: Type) -> Value {
    let [zero, one] = [0, 1].map(|number| emit.int(number, ty));
    let some = emit.compare(CompareOp::Lt, start, end);
    let ahead = emit.binary(BinaryOp::Sub, end, start);
    let last = emit.binary(BinaryOp::Sub, ahead, one);
    let last = emit.binary(BinaryOp::Div, last, step);
    let turns = emit.binary(BinaryOp::Add, last, one);
    emit.select(some, turns, zero)
}

/// Whether an instruction is of a kind, or holds one that is.
pub(crate) fn holds(function: &Function, inst: Inst, is: impl Fn(&InstData) -> bool) -> bool {
    let data = &function.insts[inst].data;
    let mut found = is(data);
    for region in data.regions() {
        function.walk(region, &mut |_, inner| {
            found |= is(&function.insts[inner].data)
        });
    }
    found
}

/// Whether a region ends or continues a loop, or the function; with a depth, only what is outside of so many loops
/// around.
pub(crate) fn leaves(function: &Function, region: Region, depth: Option<u32>) -> bool {
    function.regions[region].insts.iter().any(|&inst| {
        let data = &function.insts[inst].data;
        let own = match (data.control(), depth) {
            (Control::Leave { depth: left, .. }, Some(depth)) => left >= depth,
            (Control::Leave { .. }, None) | (Control::Return { .. }, _) => true,
            _ => false,
        };
        let inner = depth.map(|depth| depth + u32::from(data.is_loop()));
        let mut regions = data.regions().into_iter();
        own || regions.any(|region| leaves(function, region, inner))
    })
}
