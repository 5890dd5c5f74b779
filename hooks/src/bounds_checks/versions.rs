//! Two versions of a loop: one without the checks that were made before it, and the loop as it was.

use std::collections::{HashMap, HashSet};

use kiln_compiler::ir::{
    AddressSpace, Control, FuncId, Function, FunctionKind, Inst, InstCopy, InstData, IntrinsicDef,
    IntrinsicId, Module, PrimaryMap, Region, RegionData, Source, Type, TypeTable, UnaryOp, Value,
    ValueDef, Var, VarData, VarUse,
};
use kiln_compiler::simt::Uniformities;
use kiln_compiler::target::Target;

use super::before::{Before, Inside, Truth};
use super::code::Code;
use super::conditions::{Guard, Homes, guards, guards_behind};
use super::gathers::{self, Gather};
use super::held::{self, Held};
use super::lanes::Block;
use super::proof::Proof;
use super::sum::Wide;

/// A loop of more instructions stays as it is.
const MAX_LOOP: usize = 2_000;

/// How many instructions a function may grow by.
const MAX_GROWTH: usize = 20_000;

/// The functions in which threads meet, or in those that they call.
pub(super) fn meeting(module: &Module) -> HashSet<FuncId> {
    let mut meeting = HashSet::new();
    loop {
        let before = meeting.len();
        for (id, function) in module.functions.iter() {
            let mut nodes = function.insts.values();
            if nodes.any(|node| meets(&node.data, &module.intrinsics, &meeting)) {
                meeting.insert(id);
            }
        }
        if meeting.len() == before {
            return meeting;
        }
    }
}

/// Whether threads meet at an operation.
fn meets(
    data: &InstData,
    intrinsics: &PrimaryMap<IntrinsicId, &'static IntrinsicDef>,
    meeting: &HashSet<FuncId>,
) -> bool {
    data.facts(intrinsics).meets
        || data
            .callee()
            .is_some_and(|callee| meeting.contains(&callee))
}

/// Whether a loop checks an index under a condition, so that it matters for whom that holds.
fn checks_under_conditions(
    function: &Function,
    region: Region,
    (in_loop, is_decided): (bool, bool),
) -> bool {
    let mut insts = function.regions[region].insts.iter();
    insts.any(|&inst| {
        let data = &function.insts[inst].data;
        let within = match data.is_loop() {
            true => (true, is_decided),
            false => (in_loop, in_loop),
        };
        let mut regions = data.regions().into_iter();
        is_decided && data.check().is_some()
            || regions.any(|region| checks_under_conditions(function, region, within))
    })
}

/// What is the same in all threads of a block, of a kernel where that matters.
fn alike(module: &Module, id: FuncId) -> Option<Uniformities> {
    let function = &module.functions[id];
    let is_wanted = function.kind == FunctionKind::Kernel
        && checks_under_conditions(function, function.body, (false, false));
    is_wanted.then(|| Uniformities::of_any_block(module, function))
}

/// Gives the loops of a function two versions where that takes checks out of them.
pub(super) fn make(
    module: &mut Module,
    (id, meeting): (FuncId, &HashSet<FuncId>),
    target: &Target,
) -> HashSet<Inst> {
    let by_block = matches!(target, Target::Cpu(_));
    let function = &module.functions[id];
    let is_asked = by_block || meeting.contains(&id);
    let is_asked = is_asked && function.kind == FunctionKind::Kernel;
    let block = is_asked.then(|| Block::of(module, id));
    let alike = match block {
        Some(_) => None,
        None => alike(module, id),
    };
    let mut versions = Versions {
        block,
        alike,
        by_block,
        holds: held::is_for(target),
        held: Vec::new(),
        guards: Vec::new(),
        homes: Homes::default(),
        function: &mut module.functions[id],
        types: &module.types,
        intrinsics: &module.intrinsics,
        meeting,
        growth: 0,
        known: HashSet::new(),
        slow: HashSet::new(),
        asked: HashSet::new(),
    };
    match by_block {
        true => versions.whole(),
        false if versions.block.is_some() => versions.ahead(),
        false => {}
    }
    let body = versions.function.body;
    versions.region(body);
    let Versions { slow, held, .. } = versions;
    held::hold(module, id, &held);
    slow
}

pub(super) struct Versions<'m> {
    /// Of a kernel in which threads meet, or whose loops are asked for the whole block where they can be.
    pub(super) block: Option<Block>,
    /// What is the same in all threads of a block, of a kernel that is asked about thread by thread, where that matters.
    alike: Option<Uniformities>,
    /// Whether one answer for the whole block is better than one for each thread.
    pub(super) by_block: bool,
    /// Whether code for the target can hold a load where it is.
    holds: bool,
    /// What was read before the question of a gather.
    held: Vec<Held>,
    /// What holds at the instruction that is looked at, by the conditions around it.
    guards: Vec<Guard>,
    /// Where instructions stand.
    homes: Homes,
    pub(super) function: &'m mut Function,
    pub(super) types: &'m TypeTable,
    pub(super) intrinsics: &'m PrimaryMap<IntrinsicId, &'static IntrinsicDef>,
    meeting: &'m HashSet<FuncId>,
    pub(super) growth: usize,
    /// Accesses without a check, as a question around them stands for it.
    known: HashSet<Inst>,
    /// Loops of the version with checks that a kernel has beside one without, asked for at its start.
    pub(super) asked: HashSet<Inst>,
    /// Loops as they were, for when the answer is no: where threads meet, it may be no at an edge of what there is.
    slow: HashSet<Inst>,
}

/// What becomes of a loop.
struct Plan {
    /// What is computed before it.
    before: Vec<Inst>,
    /// Whether the fast version is to be tried; none if it always is.
    test: Option<Value>,
    /// Accesses that need no check, with their indices.
    proved: Vec<(Inst, Wide)>,
    /// Accesses by what is in memory.
    gathers: Vec<Gather>,
    /// The variables that the loop assigns, and what they are before.
    saved: Vec<(Var, Value)>,
    /// Whether threads meet in it.
    meets: bool,
}

impl Versions<'_> {
    fn region(&mut self, region: Region) {
        // What stands before a loop is looked at from there.
        let insts = self.function.regions[region].insts.clone();
        let mut made = Vec::with_capacity(insts.len());
        let around = self.guards.len();
        for inst in insts {
            if self.function.insts[inst].data.is_loop() {
                self.version(inst, &mut made);
            } else {
                self.inner(inst);
                made.push(inst);
            }
        }
        self.function.regions[region].insts = made;
        self.guards.truncate(around);
    }

    /// The loops within an instruction.
    fn inner(&mut self, inst: Inst) {
        let control = self.function.insts[inst].data.control();
        if let (
            Control::If {
                cond,
                then_region,
                else_region,
            },
            true,
        ) = (control, self.by_block)
        {
            let arms = [(Some(then_region), true), (else_region, false)];
            for (region, holds) in arms {
                let known = self.guards.len();
                guards(
                    self.function,
                    &mut self.homes,
                    (cond, holds),
                    &mut self.guards,
                );
                region.into_iter().for_each(|region| self.region(region));
                self.guards.truncate(known);
            }
            let arms = arms.map(|(region, _)| region);
            guards_behind(
                self.function,
                &mut self.homes,
                (cond, arms),
                &mut self.guards,
            );
            return;
        }
        for region in self.function.insts[inst].data.regions() {
            self.region(region);
        }
    }

    /// Puts a loop, as it becomes, behind what there is of its region.
    fn version(&mut self, the_loop: Inst, made: &mut Vec<Inst>) {
        if self.asked.contains(&the_loop) {
            made.push(the_loop);
            return;
        }
        let Some(plan) = self.plan(the_loop) else {
            self.inner(the_loop);
            made.push(the_loop);
            return;
        };
        let at = self.function.insts[the_loop].location;
        made.extend(&plan.before);
        let Some(test) = plan.test else {
            let copy = InstCopy::of_itself(the_loop);
            self.make_fast(&self.regions_of(the_loop), &plan.proved, &copy);
            self.inner(the_loop);
            made.push(the_loop);
            return;
        };
        let copy = self.function.copy_inst(the_loop);
        let also = copy
            .insts
            .iter()
            .filter(|(inst, _)| self.known.contains(*inst));
        let also: Vec<Inst> = also.map(|(_, also)| *also).collect();
        self.known.extend(also);
        self.growth += copy.insts.len();
        let fast = copy.inst;
        if plan.gathers.is_empty() {
            self.make_fast(&self.regions_of(fast), &plan.proved, &copy);
            self.make_slow(the_loop);
            if !plan.meets {
                self.slow.insert(the_loop);
            }
            let [then_region, slow] =
                [vec![fast], vec![the_loop]].map(|insts| self.new_region(insts));
            let else_region = Some(slow);
            let versions = InstData::If {
                cond: test,
                then_region,
                else_region,
            };
            made.push(self.function.new_inst(versions, Type::UNIT, at));
        } else {
            self.try_fast((the_loop, &copy), &plan, test, made);
        }
        self.inner(fast);
    }

    /// What is to become of a loop; `None` if it stays.
    fn plan(&mut self, the_loop: Inst) -> Option<Plan> {
        let inside = Inside::of(self.function, the_loop);
        let size = inside.len();
        let checks = self.checks(inside.insts()).len();
        if checks == 0 || size > MAX_LOOP || self.growth + size > MAX_GROWTH {
            return None;
        }
        let meets = inside.insts().any(|inst| self.meets(inst));
        if self.by_block && !meets {
            let of_block = self.plan_as(the_loop, &inside, (true, false));
            let asked_at_once = |plan: &Plan| plan.proved.len() == checks;
            return of_block
                .filter(asked_at_once)
                .or_else(|| self.plan_as(the_loop, &inside, (false, false)));
        }
        self.plan_as(the_loop, &inside, (meets, meets))
    }

    /// What is to become of a loop, asked for the whole block or for each thread.
    fn plan_as(
        &mut self,
        the_loop: Inst,
        inside: &Inside,
        (by_block, meets): (bool, bool),
    ) -> Option<Plan> {
        let block = match by_block {
            true => Some(self.block.as_ref()?),
            false => None,
        };
        let the_block = (the_loop, block);
        let mut before = Before::new(
            (self.function, self.types),
            self.intrinsics,
            inside,
            the_block,
        );
        before.on_cpu = self.by_block;
        let of_block = self.block.as_ref().map(Block::uniformities);
        before.alike = of_block.or(self.alike.as_ref());
        let Proof {
            test,
            proved,
            counters,
        } = Proof::of(&mut before, self.types, the_loop, &self.guards)?;
        let proved_here = proved.iter().map(|(inst, _)| inst);
        let without: HashSet<Inst> = proved_here.chain(&self.known).copied().collect();
        let mut filled = test;
        // Few turns are unrolled, and their loads under way at once, whatever is looked at in each.
        // On a CPU a condition in each turn is a mask, and costs more than the check.
        let gathers = match counters[0].is_short() || self.by_block {
            true => None,
            false => gathers::of(&mut before, self.types, (the_loop, &without), &mut filled),
        };
        let gathers = gathers.unwrap_or_default();
        let test = if gathers.is_empty() { test } else { filled };
        if test == Truth::Known(false) || proved.is_empty() && gathers.is_empty() {
            return None;
        }
        let wide =
            |(inst, sum): (Inst, super::sum::Sum)| (inst, Wide::of(&sum, &mut before, &counters));
        let proved = proved.into_iter().map(wide).collect();
        let saved = match gathers.is_empty() {
            true => Vec::new(),
            false => save(&mut before),
        };
        let test = match test {
            Truth::Known(_) if gathers.is_empty() => None,
            test => Some(before.truth(test)),
        };
        Some(Plan {
            test,
            proved,
            gathers,
            saved,
            meets,
            before: before.into_insts(),
        })
    }

    /// Whether threads meet at an instruction.
    pub(super) fn meets(&self, inst: Inst) -> bool {
        let data = &self.function.insts[inst].data;
        meets(data, self.intrinsics, self.meeting)
    }

    pub(super) fn regions_of(&self, inst: Inst) -> Vec<Region> {
        self.function.insts[inst].data.regions().to_vec()
    }

    fn new_var(&mut self, name: &str, ty: Type) -> Var {
        let name = name.to_owned();
        self.function.vars.push(VarData { name, ty })
    }

    pub(super) fn new_region(&mut self, insts: Vec<Inst>) -> Region {
        self.function.regions.push(RegionData { insts })
    }

    /// Takes the checks out of regions.
    pub(super) fn make_fast(&mut self, fast: &[Region], proved: &[(Inst, Wide)], copy: &InstCopy) {
        let at = |inst: &Inst| copy.insts.get(inst).copied().unwrap_or(*inst);
        let mut put = HashMap::new();
        for (inst, wide) in proved {
            let inst = at(inst);
            let mut code = Code::new(self.function, inst);
            let index = wide.put(&mut code, copy);
            code.select(index);
            put.insert(inst, code.insts);
            self.known.insert(inst);
        }
        for &region in fast {
            self.put_in(region, &mut put);
        }
    }

    /// Puts instructions before others in a region and those within it.
    fn put_in(&mut self, region: Region, put: &mut HashMap<Inst, Vec<Inst>>) {
        let insts = std::mem::take(&mut self.function.regions[region].insts);
        let mut made = Vec::with_capacity(insts.len());
        for inst in insts {
            for inner in self.function.insts[inst].data.regions() {
                self.put_in(inner, put);
            }
            made.extend(put.remove(&inst).unwrap_or_default());
            made.push(inst);
        }
        self.function.regions[region].insts = made;
    }

    /// Has the rest of a turn, from a gather on, be done only if no index was out of bounds, or the gather select the
    /// first element.
    fn go_on_inside(
        &mut self,
        around: Inst,
        (inst, gather): (Inst, &Gather),
        (copy, outside): (&InstCopy, Var),
        proved: &HashSet<Inst>,
    ) {
        for region in self.function.insts[around].data.regions() {
            let insts = &self.function.regions[region].insts;
            let Some(at) = insts.iter().position(|&other| other == inst) else {
                for inner in insts.clone() {
                    self.go_on_inside(inner, (inst, gather), (copy, outside), proved);
                }
                continue;
            };
            let mut rest = self.function.regions[region].insts.split_off(at);
            let early = match gather.takes_first || !self.holds {
                true => Vec::new(),
                false => held::loads_of(self.function, self.intrinsics, (&mut rest, proved)),
            };
            let mut code = Code::new(self.function, inst);
            let cond = gather.look(&mut code, copy, outside);
            if !gather.takes_first {
                let then_region = code.region(std::mem::take(&mut rest));
                let reads = |inst: &&Inst| {
                    let data = &code.function.insts[**inst].data;
                    data.facts(self.intrinsics).reads
                };
                let loads = early.iter().filter(reads);
                self.held.extend(loads.map(|&load| (load, then_region)));
                code.effect(InstData::If {
                    cond,
                    then_region,
                    else_region: None,
                });
            }
            let look = code.into_insts();
            let insts = &mut self.function.regions[region].insts;
            insts.extend(early.into_iter().chain(look).chain(rest));
            return;
        }
    }

    /// The loop that faults where it did is not worth more code, nor are those in it: none is unrolled, not where that was
    /// asked for either, unless the counter says which element of the thread's own memory it is. That memory becomes
    /// registers, in both versions, only where all such loops are unrolled. And LLVM shares what two unrolled versions
    /// end with, so that the last element of a vector would be one by itself.
    pub(super) fn make_slow(&mut self, slow: Inst) {
        let inside = Inside::of(self.function, slow);
        let index = self.counters_of_own_memory(&inside);
        let others = inside.insts().filter(|inst| !index.contains(inst));
        self.never_unroll(others);
    }

    /// The loops whose counters say which address of the thread's own memory it is: by values and variables that it is
    /// made of, by conditions that choose these, and by how far other such loops count.
    fn counters_of_own_memory(&self, inside: &Inside) -> HashSet<Inst> {
        let (mut loops, mut seen) = (HashSet::new(), HashSet::new());
        let mut open: Vec<Inst> = inside.insts().filter(|&inst| self.is_own(inst)).collect();
        while let Some(inst) = open.pop() {
            if !seen.insert(inst) {
                continue;
            }
            let data = &self.function.insts[inst].data;
            // What is read from memory no loop makes constant.
            if let Source::Memory { .. } = data.facts(self.intrinsics).source {
                continue;
            }
            let mut made_of = self.set_by(data, inside);
            data.for_each_operand(|operand| made_of.push(operand));
            for value in made_of {
                match self.function.values[value].def {
                    ValueDef::Index(the_loop) if !self.counts_as_passed(the_loop) => {
                        loops.insert(the_loop);
                        open.push(the_loop);
                    }
                    ValueDef::Inst(inst) => open.push(inst),
                    ValueDef::Index(_) | ValueDef::Param(_) => {}
                }
            }
        }
        loops
    }

    /// Whether a loop counts as far as a parameter says, so that it is never unrolled as a whole.
    fn counts_as_passed(&self, the_loop: Inst) -> bool {
        let mut is_passed = false;
        self.function.insts[the_loop]
            .data
            .for_each_operand(|bound| {
                is_passed |= matches!(self.function.values[bound].def, ValueDef::Param(_));
            });
        is_passed
    }

    /// What a variable that this reads is set to inside, and what is asked before that.
    fn set_by(&self, data: &InstData, inside: &Inside) -> Vec<Value> {
        let Some(VarUse::Get(read)) = data.var_use() else {
            return Vec::new();
        };
        let set_by = |inst: Inst| match self.function.insts[inst].data.var_use() {
            Some(VarUse::Set(var, value)) => (var == read).then_some(value),
            Some(VarUse::Get(_)) | None => None,
        };
        let is_set = |inst: Inst| {
            let within = Inside::of(self.function, inst);
            within.insts().any(|inst| set_by(inst).is_some())
        };
        let found = inside
            .insts()
            .filter_map(|inst| match &self.function.insts[inst].data {
                InstData::If { cond, .. } if is_set(inst) => Some(*cond),
                _ => set_by(inst),
            });
        found.collect()
    }

    /// Whether an instruction gives an address of the thread's own memory.
    fn is_own(&self, inst: Inst) -> bool {
        let result = self.function.insts[inst].result;
        let address = result.and_then(|value| self.types.address(self.function.type_of(value)));
        address.is_some_and(|address| address.space == AddressSpace::Local)
    }

    /// The fast version, and after it the loop from its start if an index was out of bounds.
    fn try_fast(
        &mut self,
        (slow, copy): (Inst, &InstCopy),
        plan: &Plan,
        test: Value,
        made: &mut Vec<Inst>,
    ) {
        let outside = self.new_var("out_of_bounds", Type::BOOL);
        self.make_fast(&self.regions_of(copy.inst), &plan.proved, copy);
        let proved = plan.proved.iter().map(|(inst, _)| copy.insts[inst]);
        let proved: HashSet<Inst> = proved.collect();
        for gather in &plan.gathers {
            let gather = (copy.insts[&gather.inst], gather);
            self.go_on_inside(copy.inst, gather, (copy, outside), &proved);
        }
        self.make_slow(slow);
        self.slow.insert(slow);
        let mut code = Code::new(self.function, slow);
        let untried = code.value(
            InstData::Unary {
                op: UnaryOp::Not,
                arg: test,
            },
            Type::BOOL,
        );
        code.effect(InstData::VarSet(outside, untried));
        let then_region = code.region(vec![copy.inst]);
        code.effect(InstData::If {
            cond: test,
            then_region,
            else_region: None,
        });
        let cond = code.value(InstData::VarGet(outside), Type::BOOL);
        let tried = std::mem::take(&mut code.insts);
        for &(var, value) in &plan.saved {
            code.effect(InstData::VarSet(var, value));
        }
        let again = code.insts.drain(..).chain([slow]).collect();
        let then_region = code.region(again);
        code.effect(InstData::If {
            cond,
            then_region,
            else_region: None,
        });
        made.extend(tried);
        made.append(&mut code.insts);
    }
}

/// What the variables that the loop assigns are before it.
fn save(before: &mut Before<'_>) -> Vec<(Var, Value)> {
    let assigned = before.inside.assigned();
    let save = |var| {
        let ty = before.function.vars[var].ty;
        (var, before.put(InstData::VarGet(var), ty))
    };
    assigned.into_iter().map(save).collect()
}
