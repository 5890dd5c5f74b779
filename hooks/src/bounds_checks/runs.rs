//! Checks of code that runs straight on, made at once.
//!
//! ```text
//! let a = x[i];                         if !(i < x.len() && j < y.len()) {
//! let b = y[j];                             check x[i]; check y[j];   // one of them ends the thread
//! z[i] = a + b;                         }
//!                                       let a = x[i]; let b = y[j];   // unchecked
//! ```
//!
//! A run goes on through what computes, reads, writes and decides, as long as the indices are known at its start, and
//! ends where control may go elsewhere, threads meet or memory is ordered. So in its fast version loads do not wait for
//! each other's checks, and a thread has one branch for all. The thread that faults faults where it did;
//! what it wrote in that run before is not written.

use std::collections::{HashMap, HashSet};

use kiln_compiler::ir::{
    BinaryOp, Check, CompareOp, Control, FuncId, Function, Inst, InstData, IntrinsicDef,
    IntrinsicId, Module, PrimaryMap, Region, RegionData, Source, Type, TypeTable, UnaryOp, Value,
    ValueDef, Var, VarUse,
};

use super::before::{MAX_DEPTH, known_integer};
use super::code::Code;
use super::proof::Limit;

/// A run with more checks is two.
const MAX_CHECKS: usize = 96;

/// Makes the checks of runs at once, but for loops that are `slow`.
pub(super) fn make(module: &mut Module, id: FuncId, slow: &HashSet<Inst>) {
    let function = &mut module.functions[id];
    let mut runs = Runs {
        function,
        types: &module.types,
        intrinsics: &module.intrinsics,
        slow,
    };
    let body = runs.function.body;
    runs.region(body);
}

struct Runs<'m> {
    function: &'m mut Function,
    types: &'m TypeTable,
    intrinsics: &'m PrimaryMap<IntrinsicId, &'static IntrinsicDef>,
    slow: &'m HashSet<Inst>,
}

/// A check of a run.
#[derive(Clone)]
struct Asked {
    access: Inst,
    check: Check,
    /// Conditions within the run under which control comes to it, and whether they hold or not.
    under: Vec<(Value, bool)>,
}

/// Instructions in a row, the first of which has a check.
#[derive(Default)]
struct Run {
    insts: Vec<Inst>,
    /// All of them with those in their regions.
    all: HashSet<Inst>,
    assigned: HashSet<Var>,
    asked: Vec<Asked>,
    /// What is computed before all of it, in order.
    first: Vec<Inst>,
    is_first: HashSet<Inst>,
}

impl Run {
    /// Forgets what was noted since there were so many checks and so much to compute before.
    fn forget(&mut self, (asked, first): (usize, usize)) {
        self.asked.truncate(asked);
        for inst in self.first.drain(first..) {
            self.is_first.remove(&inst);
        }
    }
}

impl Runs<'_> {
    fn region(&mut self, region: Region) {
        let insts = std::mem::take(&mut self.function.regions[region].insts);
        let mut made = Vec::with_capacity(insts.len());
        let mut run = Run::default();
        for inst in insts {
            if self.join(&mut run, inst) {
                continue;
            }
            // What ends a run may begin another one.
            let ended = std::mem::take(&mut run);
            let may_begin = !ended.insts.is_empty();
            self.close(ended, &mut made);
            if !(may_begin && self.join(&mut run, inst)) {
                self.inner(inst);
                made.push(inst);
                run = Run::default();
            }
        }
        self.close(run, &mut made);
        self.function.regions[region].insts = made;
    }

    /// The runs within an instruction.
    fn inner(&mut self, inst: Inst) {
        if !self.slow.contains(&inst) {
            for region in self.function.insts[inst].data.regions() {
                self.region(region);
            }
        }
    }

    /// Adds an instruction to a run, if it can be in it. None begins without a check.
    fn join(&self, run: &mut Run, inst: Inst) -> bool {
        let before = (run.asked.len(), run.first.len());
        let joins = self.scan(run, inst, &mut Vec::new()).is_some()
            && (1..=MAX_CHECKS).contains(&run.asked.len());
        match joins {
            true => run.insts.push(inst),
            false => run.forget(before),
        }
        joins
    }

    fn scan(&self, run: &mut Run, inst: Inst, under: &mut Vec<(Value, bool)>) -> Option<()> {
        let data = &self.function.insts[inst].data;
        run.all.insert(inst);
        if let Some(VarUse::Set(var, _)) = data.var_use() {
            run.assigned.insert(var);
        }
        if let Some(check) = data.check() {
            return self.ask(run, (inst, check), under);
        }
        let Control::If {
            cond,
            then_region,
            else_region,
        } = data.control()
        else {
            return self.runs_on(data).then_some(());
        };
        let asked = run.asked.len();
        for (region, holds) in [(Some(then_region), true), (else_region, false)] {
            let insts = region.map(|region| &self.function.regions[region].insts);
            under.push((cond, holds));
            for &inner in insts.into_iter().flatten() {
                self.scan(run, inner, under)?;
            }
            under.pop();
        }
        match run.asked.len() > asked {
            true => self.early(run, cond, 0),
            false => Some(()),
        }
    }

    /// Whether an operation without regions may be in a run.
    fn runs_on(&self, data: &InstData) -> bool {
        match data {
            InstData::Load { volatile, .. } | InstData::Store { volatile, .. } => !volatile,
            InstData::VarSet(..) | InstData::LocalAlloc => true,
            _ => data.facts(self.intrinsics).is_harmless(),
        }
    }

    /// Adds a check to a run, if it can be made at its start.
    fn ask(
        &self,
        run: &mut Run,
        (access, check): (Inst, Check),
        under: &[(Value, bool)],
    ) -> Option<()> {
        match Limit::of(self.function, self.types, check.base) {
            Limit::Known(length) => {
                let known = known_integer(self.function, check.index);
                if known.is_some_and(|known| (0..length).contains(&known)) {
                    return Some(());
                }
            }
            Limit::Of(slice) => self.early(run, slice, 0)?,
        }
        self.early(run, check.index, 0)?;
        run.asked.push(Asked {
            access,
            check,
            under: under.to_vec(),
        });
        Some(())
    }

    /// Has a value be computed before the run.
    fn early(&self, run: &mut Run, value: Value, depth: u32) -> Option<()> {
        let ValueDef::Inst(inst) = self.function.values[value].def else {
            return Some(());
        };
        if !run.all.contains(&inst) || run.is_first.contains(&inst) {
            return Some(());
        }
        let data = &self.function.insts[inst].data;
        let facts = data.facts(self.intrinsics);
        let stays = match facts.source {
            Source::Operands | Source::Row(_) => facts.is_harmless(),
            Source::Variable(var) => !run.assigned.contains(&var),
            _ => false,
        };
        if !stays || depth == MAX_DEPTH {
            return None;
        }
        let mut operands = Vec::new();
        data.for_each_operand(|operand| operands.push(operand));
        for operand in operands {
            self.early(run, operand, depth + 1)?;
        }
        run.first.push(inst);
        run.is_first.insert(inst);
        Some(())
    }

    /// The limit of an index, as a value of type `u64`.
    fn limit(code: &mut Code<'_>, limit: Limit) -> Value {
        match limit {
            Limit::Known(length) => code.constant(length, Type::U64),
            Limit::Of(slice) => code.value(InstData::SliceLen { slice }, Type::U64),
        }
    }

    /// Puts a run, as it becomes, behind what there is of its region.
    fn close(&mut self, run: Run, made: &mut Vec<Inst>) {
        let always = run.asked.iter().rfind(|asked| asked.under.is_empty());
        let Some(always) = always.filter(|_| run.asked.len() > 1).cloned() else {
            for inst in run.insts {
                self.inner(inst);
                made.push(inst);
            }
            return;
        };
        made.extend(&run.first);
        let ok = self.question(&run, made);
        let (needed, mut values) = (self.needed(&run), HashMap::new());
        let mut cold = self.copies(&needed, &run.insts, &mut values);
        let last = run.asked.last().map(|asked| asked.access);
        if last == Some(always.access) {
            // It is the last one that is copied, too.
            cold.pop();
        }
        cold.extend(self.end(&always, &values));
        let [then_region, else_region] =
            [Vec::new(), cold].map(|insts| self.function.regions.push(RegionData { insts }));
        let ends = InstData::If {
            cond: ok,
            then_region,
            else_region: Some(else_region),
        };
        let at = self.function.insts[run.insts[0]].location;
        made.push(self.function.new_inst(ends, Type::UNIT, at));
        for asked in &run.asked {
            Code::new(self.function, asked.access).select(asked.check.index);
        }
        let region = self.function.regions.push(RegionData { insts: run.insts });
        self.without(region, &run.is_first);
        made.append(&mut self.function.regions[region].insts);
    }

    /// Takes instructions out of a region and those in it.
    fn without(&mut self, region: Region, gone: &HashSet<Inst>) {
        let mut insts = std::mem::take(&mut self.function.regions[region].insts);
        insts.retain(|inst| !gone.contains(inst));
        for &inst in &insts {
            for inner in self.function.insts[inst].data.regions() {
                self.without(inner, gone);
            }
        }
        self.function.regions[region].insts = insts;
    }

    /// Whether all checks of a run hold, computed behind what is there.
    fn question(&mut self, run: &Run, made: &mut Vec<Inst>) -> Value {
        let mut asked = HashSet::new();
        let mut all: Option<Value> = None;
        for Asked {
            access,
            check,
            under,
        } in &run.asked
        {
            if !asked.insert((check.base, check.index, under)) {
                continue;
            }
            let limit = Limit::of(self.function, self.types, check.base);
            let mut code = Code::new(self.function, *access);
            let length = Self::limit(&mut code, limit);
            let index = code.value(InstData::Cast { arg: check.index }, Type::U64);
            let op = CompareOp::Lt;
            let args = [index, length];
            let mut holds = code.value(InstData::Compare { op, args }, Type::BOOL);
            for &(cond, comes) in under {
                let other = match comes {
                    true => code.value(
                        InstData::Unary {
                            op: UnaryOp::Not,
                            arg: cond,
                        },
                        Type::BOOL,
                    ),
                    false => cond,
                };
                let (op, args) = (BinaryOp::Or, [other, holds]);
                holds = code.value(InstData::Binary { op, args }, Type::BOOL);
            }
            if let Some(before) = all {
                let (op, args) = (BinaryOp::And, [before, holds]);
                holds = code.value(InstData::Binary { op, args }, Type::BOOL);
            }
            all = Some(holds);
            made.append(&mut code.into_insts());
        }
        all.expect("a run has checks")
    }

    /// The checks of a run, what they lean on in it, and the branches to them.
    fn needed(&self, run: &Run) -> HashSet<Inst> {
        let mut needed = HashSet::new();
        let mut open: Vec<Inst> = run.asked.iter().map(|asked| asked.access).collect();
        while let Some(inst) = open.pop() {
            if !run.all.contains(&inst) || run.is_first.contains(&inst) || !needed.insert(inst) {
                continue;
            }
            self.function.insts[inst].data.for_each_operand(|operand| {
                if let ValueDef::Inst(inst) = self.function.values[operand].def {
                    open.push(inst);
                }
            });
        }
        needed
    }

    /// Copies of what is needed, in order.
    fn copies(
        &mut self,
        needed: &HashSet<Inst>,
        insts: &[Inst],
        values: &mut HashMap<Value, Value>,
    ) -> Vec<Inst> {
        let mut made = Vec::new();
        for &inst in insts {
            let node = self.function.insts[inst].clone();
            let mut data = node.data;
            let mut is_empty = true;
            data.map_operands(|value| values.get(&value).copied().unwrap_or(value));
            let copied: Result<(), std::convert::Infallible> = data.map_regions(|region| {
                let insts = self.function.regions[region].insts.clone();
                let insts = self.copies(needed, &insts, values);
                is_empty &= insts.is_empty();
                Ok(self.function.regions.push(RegionData { insts }))
            });
            let Ok(()) = copied;
            if !needed.contains(&inst) && is_empty {
                continue;
            }
            let ty = node.result.map(|value| self.function.type_of(value));
            let ty = ty.unwrap_or(Type::UNIT);
            let own = self.function.new_inst(data, ty, node.location);
            self.function.insts[own].fast = node.fast;
            made.push(own);
            if let (Some(old), Some(new)) = (node.result, self.function.insts[own].result) {
                values.insert(old, new);
            }
        }
        made
    }

    /// A check whose index is said to be out of bounds, as it is if no other one is: so whoever compiles it knows that
    /// no thread comes out of here.
    fn end(&mut self, last: &Asked, values: &HashMap<Value, Value>) -> Vec<Inst> {
        let mut data = self.function.insts[last.access].data.clone();
        let ty = self.function.insts[last.access].result;
        let ty = ty.map_or(Type::UNIT, |value| self.function.type_of(value));
        data.map_operands(|value| values.get(&value).copied().unwrap_or(value));
        let limit = Limit::of(self.function, self.types, last.check.base);
        let mut code = Code::new(self.function, last.access);
        let length = Self::limit(&mut code, limit);
        let index = code.value(
            InstData::Cast {
                arg: last.check.index,
            },
            Type::U64,
        );
        let (op, args) = (BinaryOp::Max, [index, length]);
        let mut beyond = code.value(InstData::Binary { op, args }, Type::U64);
        let scalar = code.function.type_of(last.check.index).as_scalar();
        if scalar.is_some_and(|scalar| scalar.is_signed_int()) {
            // A negative index is told as one.
            beyond = code.value(InstData::Cast { arg: beyond }, Type::I64);
        }
        data.map_operands(|value| {
            if value == last.check.index {
                beyond
            } else {
                value
            }
        });
        code.value(data, ty);
        code.into_insts()
    }
}
