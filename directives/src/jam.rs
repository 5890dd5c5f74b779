//! Unroll and jam: iterations of a loop side by side, statement by statement.
//!
//! Of a loop that counts `start .. end` without a sign by a step that is above 0, as all that `shares.rs` writes do,
//! groups of iterations become one turn of another loop each: what is in the body is written once for each iteration,
//! one beside the other. A loop within whose bounds are the same for all is executed once for all; so are barriers, and
//! what fills shared memory. An `if` that holds a loop and whose condition is not the same for all is cut in two: where
//! it holds for all they go on side by side, elsewhere one after the other. Iterations that do not fill a group are
//! executed by the loop as it was.

use std::collections::{HashMap, HashSet};

use kiln_jit_core::ir::{
    BinaryOp, CompareOp, Control, FuncId, Function, Inst, InstData, Module, Read, Region, Source,
    Type, Unroll, Value, Var, VarUse,
};

use crate::emit::Emit;
use crate::error::DirectiveError;
use crate::program::Program;
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
}

/// A kernel in which loops are jammed.
pub(crate) struct Jammer<'m> {
    pub(crate) program: &'m Program,
    pub(crate) module: &'m mut Module,
    pub(crate) kernel: FuncId,
    /// What is executed once for all iterations, as the first one has it.
    pub(crate) once: HashSet<Inst>,
}

/// What an iteration after the first has in the place of the first one's values and variables.
#[derive(Clone, Default)]
struct Own {
    values: HashMap<Value, Value>,
    vars: HashMap<Var, Var>,
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
        let function = &mut self.module.functions[self.kernel];
        let InstData::For {
            index,
            start,
            end,
            step,
            body,
            unroll,
        } = function.insts[jam.inst].data
        else {
            unreachable!("a loop of what a thread executes is a `for`");
        };
        // Before the body is changed.
        let rest = self.copied(jam.inst);
        let function = self.function();
        let at = function.insts[jam.inst].location;
        let ty = function.type_of(index);
        let region = region_of(function, jam.inst);
        let mut emit = Emit::new(function, at);
        let [zero, one] = [0, 1].map(|number| emit.int(number, ty));
        let by = emit.int(jam.count.into(), ty);
        let turns = turns(&mut emit, [start, end, step], ty);
        let groups = emit.binary(BinaryOp::Div, turns, by);
        let mut iterations = Vec::new();
        let mut numbers = Vec::new();
        let group_body = emit.for_([zero, groups, one], unroll, |emit, group| {
            let first = emit.binary(BinaryOp::Mul, group, by);
            for number in 0..jam.count {
                let ahead = emit.int(number.into(), ty);
                let turn = emit.binary(BinaryOp::Add, first, ahead);
                let ahead = emit.binary(BinaryOp::Mul, turn, step);
                iterations.push(emit.binary(BinaryOp::Add, start, ahead));
                numbers.push(emit.int(number.into(), Type::U32));
            }
        });
        let fills = |turns: i128| turns % i128::from(jam.count) == 0;
        let has_rest = !emit.number(turns).is_some_and(fills);
        let from = match has_rest {
            true => rest_from(&mut emit, [start, end, step], [turns, groups, by]),
            false => end,
        };
        emit.list.extend(has_rest.then_some(rest));
        let list = emit.list;
        if let InstData::For { start, unroll, .. } = &mut function.insts[rest].data {
            (*start, *unroll) = (from, Unroll::Auto);
        }
        let own = function.regions[body].insts.clone();
        replace(function, &HashMap::from([(index, iterations[0])]), &own);
        let mut others = self.others(jam, &iterations, &numbers);
        self.region(body, &mut others)?;
        let function = self.function();
        let jammed = std::mem::take(&mut function.regions[body].insts);
        function.regions[group_body].insts.extend(jammed);
        let insts = &mut function.regions[region].insts;
        let place = insts.iter().position(|&held| held == jam.inst);
        let place = place.expect("the loop is in its region");
        insts.splice(place..=place, list);
        Ok(())
    }

    /// What iterations after the first have of their own, by their indices and numbers.
    fn others(&mut self, jam: Jam, iterations: &[Value], numbers: &[Value]) -> Vec<Own> {
        let body = self.function().insts[jam.inst].data.regions()[0];
        let vars = self.own_variables(body, jam.count);
        let others = vars.into_iter().enumerate().map(|(number, vars)| {
            let mut values = HashMap::from([(iterations[0], iterations[number + 1])]);
            values.extend(jam.number.map(|held| (held, numbers[number + 1])));
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

    /// An `if` that holds for some iterations: side by side where it does for all, else one after the other.
    fn where_all(
        &mut self,
        inst: Inst,
        (cond, then_region): (Value, Region),
        others: &mut [Own],
        list: &mut Vec<Inst>,
    ) -> Result<(), DirectiveError> {
        let mut one_by_one = vec![self.copied(inst)];
        for own in &mut *others {
            one_by_one.push(self.copied_for(inst, &mut own.clone()));
        }
        self.region(then_region, others)?;
        let function = self.function();
        let at = function.insts[inst].location;
        let mut conditions = vec![cond];
        conditions.extend(others.iter().map(|own| own.values[&cond]));
        let mut emit = Emit::new(function, at);
        let all = emit.all(&conditions).expect("the first one is there");
        let else_region = emit.region(|emit| emit.list.append(&mut one_by_one));
        emit.if_else(all, then_region, else_region);
        list.append(&mut emit.list);
        Ok(())
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
fn holds(function: &Function, inst: Inst, is: fn(&InstData) -> bool) -> bool {
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
fn leaves(function: &Function, region: Region, depth: Option<u32>) -> bool {
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
