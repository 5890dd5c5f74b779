//! Bodies of loops over threads in which all threads of a block meet: what an iteration does is guarded, the barrier
//! is not.
//!
//! The body is cut at what holds a barrier. What lies between is executed by the threads that have an iteration,
//! but for what computes with values alone, which all threads do. A value that is computed behind a guard and used
//! after the next barrier is kept in a variable.
//!
//! An open guard is around what [`edge`](crate::edge) has closed alone, in the loops and conditions that hold it.

use std::collections::{HashMap, HashSet};

use kiln_jit_core::ir::{Effects, Inst, InstData, Source, Type, Value, Var};

use crate::apply::{Guard, Levels, Rewrite};
use crate::edge::moves_before;
use crate::emit::Emit;
use crate::error::DirectiveError;

/// A part of a body.
enum Part {
    /// What all threads compute.
    Open(Inst),
    /// What threads with an iteration do.
    Run(Vec<Inst>),
    /// A barrier, what holds one, or another part that is cut within.
    Within(Inst),
}

impl Rewrite<'_> {
    /// The instructions of a region in which threads meet, each executed where the guard holds unless it is for all.
    pub(crate) fn guarded(
        &mut self,
        insts: Vec<Inst>,
        levels: Levels,
        guard: Guard,
    ) -> Result<Vec<Inst>, DirectiveError> {
        let parts = match guard.is_open {
            true => self.open_parts(insts),
            false => self.parts(insts),
        };
        let mut list = Vec::new();
        for (number, part) in parts.iter().enumerate() {
            match part {
                Part::Open(inst) => list.push(*inst),
                Part::Within(inst) => list.extend(self.list(vec![*inst], levels, Some(guard))?),
                Part::Run(run) => {
                    let kept = self.keep(run, &parts[number + 1..])?;
                    let mut run = self.list(run.clone(), levels, None)?;
                    let at = self.location(run[0]);
                    let mut emit = Emit::new(&mut self.module.functions[self.kernel], at);
                    let then = emit.region(|inner| {
                        inner.list.append(&mut run);
                        for (value, var) in kept {
                            inner.set(var, value);
                        }
                    });
                    emit.if_(guard.holds, then);
                    list.append(&mut emit.list);
                }
            }
        }
        Ok(list)
    }

    /// Cuts a body.
    fn parts(&self, insts: Vec<Inst>) -> Vec<Part> {
        let function = &self.module.functions[self.kernel];
        let mut parts = Vec::new();
        let mut run = Vec::new();
        // What is computed behind the guard.
        let mut behind: HashSet<Value> = HashSet::new();
        for inst in insts {
            let node = &function.insts[inst];
            if self.uniform.meets(inst) {
                if !run.is_empty() {
                    parts.push(Part::Run(std::mem::take(&mut run)));
                }
                parts.push(Part::Within(inst));
                continue;
            }
            let mut is_open = self.is_for_all(&node.data);
            node.data
                .for_each_operand(|value| is_open &= !behind.contains(&value));
            match is_open {
                // Nothing that it uses is in the run before it.
                true => parts.push(Part::Open(inst)),
                false => {
                    behind.extend(node.result);
                    run.push(inst);
                }
            }
        }
        if !run.is_empty() {
            parts.push(Part::Run(run));
        }
        parts
    }

    /// Cuts a body of which all threads execute what is not closed. Closed parts stay together over what computes with
    /// values alone, which comes before them.
    fn open_parts(&self, insts: Vec<Inst>) -> Vec<Part> {
        let function = &self.module.functions[self.kernel];
        let mut parts = Vec::new();
        let mut run = Vec::new();
        for inst in insts {
            let data = &function.insts[inst].data;
            if self.edge.is_closed(inst) {
                run.push(inst);
                continue;
            }
            if !moves_before(&self.module, function, inst, &run) && !run.is_empty() {
                parts.push(Part::Run(std::mem::take(&mut run)));
            }
            parts.push(
                match self.uniform.meets(inst) || !data.regions().is_empty() {
                    true => Part::Within(inst),
                    false => Part::Open(inst),
                },
            );
        }
        if !run.is_empty() {
            parts.push(Part::Run(run));
        }
        parts
    }

    /// Whether all threads may execute an operation, those without an iteration, too: it computes with values alone,
    /// or reads memory that no thread writes at a place that is the same for all, where the threads that have an
    /// iteration read it.
    fn is_for_all(&self, data: &InstData) -> bool {
        // Memory of the thread's own is there for each thread.
        if data.is_local() {
            return true;
        }
        let facts = data.facts(&self.module.intrinsics);
        let mut varies = false;
        data.for_each_operand(|value| varies |= self.is_varying(value));
        let pure = !facts.reads && !facts.writes && !facts.assumes && !facts.steers && !facts.meets;
        match facts.source {
            // An index that was proved is one for threads that have an iteration.
            Source::Operands => {
                let is_indexing = matches!(
                    data,
                    InstData::SliceIndex { .. } | InstData::ElementPtr { .. }
                );
                pure && (facts.check.is_none() && !is_indexing || !varies)
            }
            Source::Row(row) => pure && row.effects == Effects::None,
            Source::Memory { .. } => !facts.writes && !varies && self.is_uniform_load(data),
            Source::None
            | Source::Variable(_)
            | Source::Own
            | Source::Execution
            | Source::Callee => false,
        }
    }

    fn is_uniform_load(&self, data: &InstData) -> bool {
        let function = &self.module.functions[self.kernel];
        let mut stays = false;
        data.for_each_operand(|ptr| stays |= self.uniform.is_of_what_stays(function, ptr));
        stays
    }

    /// Keeps in variables what a run computes and later parts use.
    fn keep(&mut self, run: &[Inst], later: &[Part]) -> Result<Vec<(Value, Var)>, DirectiveError> {
        let mut kept = Vec::new();
        for &inst in run {
            let Some(value) = self.module.functions[self.kernel].insts[inst].result else {
                continue;
            };
            let users: Vec<Inst> = later.iter().flat_map(Part::insts).collect();
            let users: Vec<Inst> = users
                .into_iter()
                .filter(|&user| self.uses(user, value))
                .collect();
            if users.is_empty() {
                continue;
            }
            let ty = self.module.functions[self.kernel].type_of(value);
            if !self.can_be_kept(ty) {
                return Err(DirectiveError::Barrier {
                    place: self.program.place(self.location(inst)),
                    problem: "a reference or slice is made before a barrier in the loop and used behind it: make it again \
                              behind the barrier",
                });
            }
            let var = self.keep_for(value, ty, &users);
            kept.push((value, var));
        }
        Ok(kept)
    }

    fn can_be_kept(&self, ty: Type) -> bool {
        !self.module.types.has_references(ty)
    }

    /// A variable for a value, from which each user reads it. A user that is cut itself has it before.
    fn keep_for(&mut self, value: Value, ty: Type, users: &[Inst]) -> Var {
        let function = &mut self.module.functions[self.kernel];
        let at = function.location;
        let var = Emit::new(function, at).var("kept", ty);
        for &user in users {
            let at = self.location(user);
            let mut emit = Emit::new(&mut self.module.functions[self.kernel], at);
            let read = emit.get(var);
            let read_inst = emit.list;
            self.apart.insert(read);
            self.replace_values(&HashMap::from([(value, read)]), vec![user]);
            self.before.entry(user).or_default().extend(read_inst);
        }
        var
    }

    /// Whether an instruction, or one within it, uses a value.
    fn uses(&self, inst: Inst, value: Value) -> bool {
        let function = &self.module.functions[self.kernel];
        let data = &function.insts[inst].data;
        let mut found = false;
        data.for_each_operand(|operand| found |= operand == value);
        found
            || data.regions().into_iter().any(|region| {
                let mut insts = function.regions[region].insts.iter();
                insts.any(|&inner| self.uses(inner, value))
            })
    }
}

impl Part {
    fn insts(&self) -> Vec<Inst> {
        match self {
            Part::Open(inst) | Part::Within(inst) => vec![*inst],
            Part::Run(insts) => insts.clone(),
        }
    }
}
