//! What may be executed beyond the end of a loop: at an edge, a thread has fewer iterations than it executes side by side.
//!
//! A lane without an iteration executes one of those that others have, the last one, so that its indices are in bounds
//! and its loops end where theirs do. What that does to memory would be seen, and is executed by iterations alone; so is what
//! reads memory that the region writes. All else is executed for all lanes, without a branch, as it would be written by hand.
//! What is read from shared memory is the element at the lane's own place, though, and that may be another one than the
//! iteration's: no index and no condition may come of it.
//!
//! Where a part of an inner loop is for iterations alone, all of them would be asked in each turn of it: such loops are
//! left as they are, with another loop for the iterations that fill no group.

use std::collections::HashSet;

use kiln_jit_core::ir::{
    Control, Effects, Function, Inst, InstData, Module, Read, Region, Source, Value, ValueDef, Var,
    VarUse,
};

use crate::accesses::{is_constant, is_local};
use crate::jam::{holds, leaves};
use crate::program::Program;
use crate::schedule::{LoopSchedule, Schedule};
use crate::uniform::{base_of, written};

/// What of a program under a schedule is executed beyond the ends of loops.
#[derive(Debug, Default)]
pub(crate) struct Edge {
    /// What iterations alone execute; with an instruction, all that it holds.
    closed: HashSet<Inst>,
    /// The loops beyond whose ends the rest is executed.
    padded: HashSet<Inst>,
}

impl Edge {
    /// Of a program with its tiles.
    pub(crate) fn of(program: &Program, schedule: &Schedule) -> Edge {
        let may_pad =
            |held: &LoopSchedule| held.jammed() > 1 && held.partition.over_threads.is_some();
        if !schedule.loops.iter().any(may_pad) {
            return Edge::default();
        }
        let mut search = Search {
            program,
            function: program.function(),
            written: written(program),
            staged: staged(program, schedule),
            closed: HashSet::new(),
            closed_values: HashSet::new(),
            other: Other::default(),
            changed: true,
        };
        while std::mem::take(&mut search.changed) {
            search.region(search.function.body, false);
        }
        let mut loops = Loops {
            program,
            schedule,
            closed: &search.closed,
            padded: HashSet::new(),
        };
        loops.region(search.function.body, false);
        let padded = loops.padded;
        Edge {
            closed: search.closed,
            padded,
        }
    }

    /// Whether iterations alone execute an instruction.
    pub(crate) fn is_closed(&self, inst: Inst) -> bool {
        self.closed.contains(&inst)
    }

    /// Leaves what is written before what iterations alone execute to them, too.
    pub(crate) fn close(&mut self, insts: Vec<Inst>) {
        self.closed.extend(insts);
    }

    /// Whether something is executed beyond the end of a loop.
    pub(crate) fn pads(&self) -> bool {
        !self.padded.is_empty()
    }

    /// Whether what is not closed is executed beyond the end of a loop.
    pub(crate) fn is_padded(&self, inst: Inst) -> bool {
        self.padded.contains(&inst)
    }
}

/// The reads of slices where they are staged.
fn staged(program: &Program, schedule: &Schedule) -> HashSet<Inst> {
    let function = program.function();
    let mut staged = HashSet::new();
    for (&(inst, _), held) in program.loops.iter().zip(&schedule.loops) {
        let slices = held.shared.numbers();
        let slices = slices.filter_map(|number| function.params.get(number as usize));
        let slices: Vec<Value> = slices.map(|param| param.value).collect();
        if slices.is_empty() {
            continue;
        }
        for region in function.insts[inst].data.regions() {
            function.walk(region, &mut |_, inner| {
                let facts = function.insts[inner].data.facts(&program.module.intrinsics);
                if let Source::Memory { ptr, .. } = facts.source
                    && slices.contains(&base_of(function, ptr))
                {
                    staged.insert(inner);
                }
            });
        }
    }
    staged
}

/// What may be something else in a lane beyond the end than in the iteration that it executes.
#[derive(Default)]
struct Other {
    values: HashSet<Value>,
    vars: HashSet<Var>,
    /// Arrays of the thread's own, by where they are made.
    arrays: HashSet<Value>,
}

struct Search<'p> {
    program: &'p Program,
    function: &'p Function,
    /// Parameters whose memory the region writes.
    written: HashSet<Value>,
    staged: HashSet<Inst>,
    closed: HashSet<Inst>,
    closed_values: HashSet<Value>,
    other: Other,
    changed: bool,
}

impl Search<'_> {
    /// `chosen` tells whether a condition around may be another one in a lane beyond the end.
    fn region(&mut self, region: Region, chosen: bool) {
        for &inst in &self.function.regions[region].insts {
            self.inst(inst, chosen);
        }
    }

    fn inst(&mut self, inst: Inst, chosen: bool) {
        if self.closed.contains(&inst) {
            return;
        }
        let data = &self.function.insts[inst].data;
        let (mut of_closed, mut differs) = (false, false);
        data.for_each_operand(|value| {
            of_closed |= self.closed_values.contains(&value);
            differs |= self.other.values.contains(&value);
        });
        let is_singular = self.program.singular.contains_key(&inst);
        let is_closed = match data.control() {
            _ if of_closed || is_singular => true,
            Control::If { .. } => chosen_differs(self.program, inst) && (differs || chosen),
            Control::For { .. } => differs || chosen,
            Control::Loop { body } => chosen || self.chooses(body),
            Control::Leave { .. } | Control::Return { .. } => chosen,
            Control::Next => self.leaf(inst, differs, chosen),
        };
        if is_closed {
            self.close(inst);
            return;
        }
        for inner in data.regions() {
            self.region(inner, chosen || differs);
        }
    }

    /// Whether a condition in a region may be another one in a lane beyond the end.
    fn chooses(&self, region: Region) -> bool {
        let mut found = false;
        self.function.walk(region, &mut |_, inst| {
            if let Control::If { cond, .. } = self.function.insts[inst].data.control() {
                found |= self.other.values.contains(&cond);
            }
        });
        found
    }

    /// Whether an instruction without regions is for iterations alone.
    fn leaf(&mut self, inst: Inst, differs: bool, chosen: bool) -> bool {
        let node = &self.function.insts[inst];
        if let Some(used) = node.data.var_use() {
            match used {
                VarUse::Set(var, _) if differs || chosen => {
                    self.changed |= self.other.vars.insert(var);
                }
                VarUse::Get(var) if self.other.vars.contains(&var) => self.differ(node.result),
                _ => {}
            }
            return false;
        }
        if let InstData::Store { ptr, value, .. } = node.data {
            let base = base_of(self.function, ptr);
            if !is_local(self.function, base) {
                return true;
            }
            if chosen || self.other.values.contains(&value) {
                self.changed |= self.other.arrays.insert(base);
            }
            return false;
        }
        let facts = node.data.facts(&self.program.module.intrinsics);
        let indexes = node.data.access().is_some();
        let is_pure = !facts.writes && !facts.assumes && !facts.steers && !facts.meets;
        match facts.source {
            _ if node.data.is_local() || node.data.is_barrier() => return false,
            Source::Operands if is_pure && !facts.reads => {
                if (indexes || facts.check.is_some()) && (differs || chosen) {
                    return true;
                }
            }
            Source::Row(row) if row.effects == Effects::None && !facts.reads => {}
            Source::Memory { ptr, read } if !facts.writes && read == Read::Plain => {
                return self.load(inst, ptr, differs || chosen);
            }
            _ => return true,
        }
        if differs {
            self.differ(node.result);
        }
        false
    }

    fn load(&mut self, inst: Inst, ptr: Value, differs: bool) -> bool {
        let base = base_of(self.function, ptr);
        let is_staged = self.staged.contains(&inst);
        let stays = match self.function.values[base].def {
            ValueDef::Param(_) => !self.written.contains(&base),
            _ => is_constant(self.function, base),
        };
        if differs || !(is_staged || stays || is_local(self.function, base)) {
            return true;
        }
        if is_staged || self.other.arrays.contains(&base) {
            self.differ(self.function.insts[inst].result);
        }
        false
    }

    fn differ(&mut self, value: Option<Value>) {
        if let Some(value) = value {
            self.changed |= self.other.values.insert(value);
        }
    }

    /// Leaves an instruction, and all that it holds, to iterations. What they assign is not assigned elsewhere.
    fn close(&mut self, inst: Inst) {
        let mut all = vec![inst];
        let function = self.function;
        for region in function.insts[inst].data.regions() {
            function.walk(region, &mut |_, inner| all.push(inner));
        }
        self.changed = true;
        for inst in all {
            let node = &function.insts[inst];
            self.closed.insert(inst);
            self.closed_values.extend(node.result);
            self.other.values.extend(node.result);
            if let Some(VarUse::Set(var, _)) = node.data.var_use() {
                self.other.vars.insert(var);
            }
            if let InstData::Store { ptr, .. } = node.data {
                self.other.arrays.insert(base_of(function, ptr));
            }
        }
    }
}

/// Whether more than variables depends on which way an `if` goes: what is in it indexes, reads, repeats or leaves.
fn chosen_differs(program: &Program, inst: Inst) -> bool {
    let function = program.function();
    let matters = |data: &InstData| match data.control() {
        Control::If { .. } => false,
        Control::Next => {
            let facts = data.facts(&program.module.intrinsics);
            let computes = matches!(facts.source, Source::Operands) && data.access().is_none();
            !computes && data.var_use().is_none()
        }
        Control::Loop { .. }
        | Control::For { .. }
        | Control::Leave { .. }
        | Control::Return { .. } => true,
    };
    let mut found = false;
    for region in function.insts[inst].data.regions() {
        function.walk(region, &mut |_, inner| {
            found |= matters(&function.insts[inner].data);
        });
    }
    found
}

/// The loops of a program, outermost first.
struct Loops<'p> {
    program: &'p Program,
    schedule: &'p Schedule,
    closed: &'p HashSet<Inst>,
    padded: HashSet<Inst>,
}

impl Loops<'_> {
    /// `open` tells whether a loop around is padded.
    fn region(&mut self, region: Region, open: bool) {
        let function = self.program.function();
        for &inst in &function.regions[region].insts {
            let held = self.schedule_of(inst);
            let mut inner = open;
            if held.partition.over_threads.is_some() {
                let is_wanted = held.jammed() > 1 && self.is_worth_it(inst) || open;
                inner = is_wanted && self.can_be_padded(inst);
                if inner {
                    self.padded.insert(inst);
                }
            } else if held.jammed() > 1 {
                inner = false;
            }
            for region in function.insts[inst].data.regions() {
                self.region(region, inner);
            }
        }
    }

    fn schedule_of(&self, inst: Inst) -> LoopSchedule {
        let number = self.program.number_of(inst);
        number.map_or_else(LoopSchedule::default, |number| self.schedule.loops[number])
    }

    /// Whether an iteration is long: it holds a loop that each thread goes through, or threads meet in it.
    fn is_worth_it(&self, inst: Inst) -> bool {
        let function = self.program.function();
        let stages = |inst: Inst| {
            let held = self.schedule_of(inst);
            !held.shared.is_empty() || !held.copied_out.is_empty()
        };
        let mut found = stages(inst);
        for region in function.insts[inst].data.regions() {
            function.walk(region, &mut |_, inner| {
                let data = &function.insts[inner].data;
                let is_own = data.is_loop() && !self.schedule_of(inner).partition.is_some();
                found |= is_own || data.is_barrier() || stages(inner);
            });
        }
        found
    }

    fn can_be_padded(&self, inst: Inst) -> bool {
        let function = self.program.function();
        let mut regions = function.insts[inst].data.regions().into_iter();
        regions.all(|region| {
            let hands_on = crate::private::Body::new(self.program, (inst, ""), region)
                .check()
                .is_err();
            !hands_on
                && !leaves(function, region, Some(0))
                && !self.closes_in_loops(region, false)
                && !self.keeps_references(region)
        })
    }

    /// Whether iterations alone execute a part of a loop that each thread goes through.
    fn closes_in_loops(&self, region: Region, in_loop: bool) -> bool {
        let function = self.program.function();
        function.regions[region].insts.iter().any(|&inst| {
            let data = &function.insts[inst].data;
            if self.closed.contains(&inst) {
                return in_loop || holds(function, inst, InstData::is_loop);
            }
            let is_own = data.is_loop() && !self.schedule_of(inst).partition.is_some();
            let mut regions = data.regions().into_iter();
            regions.any(|region| self.closes_in_loops(region, in_loop || is_own))
        })
    }

    /// Whether iterations alone make a reference that they use later, behind what all execute: it cannot be kept.
    fn keeps_references(&self, region: Region) -> bool {
        let function = self.program.function();
        let insts = &function.regions[region].insts;
        let types = &self.program.module.types;
        insts.iter().enumerate().any(|(place, &inst)| {
            let node = &function.insts[inst];
            let is_closed = self.closed.contains(&inst);
            let reference = node
                .result
                .filter(|&value| types.has_references(function.type_of(value)));
            if let Some(reference) = reference.filter(|_| is_closed) {
                let mut run = vec![inst];
                let stays = |&&next: &&Inst| {
                    let closed = self.closed.contains(&next);
                    run.extend(closed.then_some(next));
                    closed || moves_before(&self.program.module, function, next, &run)
                };
                let mut behind = insts[place + 1..].iter().skip_while(stays);
                return behind.any(|&inst| uses(function, inst, reference));
            }
            let mut inner = node.data.regions().into_iter();
            !is_closed && inner.any(|region| self.keeps_references(region))
        })
    }
}

/// Whether an instruction that is not closed may come before some that are: what is closed at both sides of it stays together.
pub(crate) fn moves_before(module: &Module, function: &Function, inst: Inst, run: &[Inst]) -> bool {
    let data = &function.insts[inst].data;
    let facts = data.facts(&module.intrinsics);
    match facts.source {
        _ if !data.regions().is_empty() || facts.meets || facts.writes => false,
        Source::Operands | Source::Row(_) => true,
        Source::Variable(var) => {
            let sets =
                |data: &InstData| matches!(data.var_use(), Some(VarUse::Set(set, _)) if set == var);
            !run.iter().any(|&inst| holds(function, inst, sets))
        }
        // What the thread has to itself the others may write.
        Source::Memory { ptr, .. } => !is_local(function, base_of(function, ptr)),
        Source::None | Source::Own | Source::Execution | Source::Callee => false,
    }
}

/// Whether an instruction, or one within, uses a value.
fn uses(function: &Function, inst: Inst, value: Value) -> bool {
    let data = &function.insts[inst].data;
    let mut found = false;
    data.for_each_operand(|operand| found |= operand == value);
    for region in data.regions() {
        function.walk(region, &mut |_, inner| {
            let data = &function.insts[inner].data;
            data.for_each_operand(|operand| found |= operand == value);
        });
    }
    found
}
