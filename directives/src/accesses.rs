//! What a program does to memory, and where: each access with the loops and regions around it.

use std::collections::HashMap;

use kiln_jit_core::ir::{Function, Inst, InstData, Region, Source, Value, ValueDef};

use crate::affine::{Step, path_of};
use crate::apply::Levels;
use crate::error::DirectiveError;
use crate::program::Program;
use crate::schedule::{LoopSchedule, Schedule};
use crate::uniform::leaves;

/// A place in a region on the way to an access: the access itself, or what holds it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Held {
    pub(crate) region: Region,
    pub(crate) position: usize,
    pub(crate) inst: Inst,
}

/// A loop around an access.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Around {
    pub(crate) inst: Inst,
    pub(crate) schedule: LoopSchedule,
    /// How many loops around it are distributed.
    pub(crate) levels: Levels,
    /// How many places are before that of the loop on the way to the access.
    pub(crate) depth: usize,
}

/// A read or write of memory of a parameter.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) inst: Inst,
    /// The parameter, or another value that the address is made from.
    pub(crate) base: Value,
    /// The way from there, if it is known.
    pub(crate) steps: Option<Vec<Step>>,
    pub(crate) reads: bool,
    pub(crate) writes: bool,
    pub(crate) way: Vec<Held>,
    pub(crate) loops: Vec<Around>,
    /// Whether one thread of a block executes it.
    pub(crate) singular: bool,
    /// Whether a loop around is left from within, so that the access may not be executed in all turns.
    pub(crate) may_be_left_out: bool,
}

impl Access {
    /// Whether the memory is that of a parameter.
    pub(crate) fn is_of_param(&self, function: &Function) -> bool {
        matches!(function.values[self.base].def, ValueDef::Param(_))
    }
}

/// What a program does to memory.
#[derive(Debug, Default)]
pub(crate) struct Accesses {
    pub(crate) all: Vec<Access>,
    /// The positions of barriers in their regions.
    pub(crate) barriers: HashMap<Region, Vec<usize>>,
}

impl Accesses {
    /// All accesses of a program, in the order of the text.
    pub(crate) fn of(program: &Program, schedule: &Schedule) -> Result<Accesses, DirectiveError> {
        let mut search = Search {
            program,
            schedule,
            found: Accesses::default(),
            way: Vec::new(),
            loops: Vec::new(),
        };
        search.region(program.function().body, Levels::default(), false)?;
        Ok(search.found)
    }
}

struct Search<'p> {
    program: &'p Program,
    schedule: &'p Schedule,
    found: Accesses,
    way: Vec<Held>,
    loops: Vec<Around>,
}

impl Search<'_> {
    fn region(
        &mut self,
        region: Region,
        levels: Levels,
        singular: bool,
    ) -> Result<(), DirectiveError> {
        let function = self.program.function();
        for (position, &inst) in function.regions[region].insts.iter().enumerate() {
            let data = &function.insts[inst].data;
            let held = Held {
                region,
                position,
                inst,
            };
            self.way.push(held);
            if data.is_barrier() {
                self.found
                    .barriers
                    .entry(region)
                    .or_default()
                    .push(position);
            }
            self.access(inst, singular)?;
            let number = self.program.number_of(inst);
            let schedule =
                number.map_or_else(LoopSchedule::default, |number| self.schedule.loops[number]);
            if data.is_loop() {
                let depth = self.way.len() - 1;
                self.loops.push(Around {
                    inst,
                    schedule,
                    levels,
                    depth,
                });
            }
            let singular = singular || self.program.singular.contains_key(&inst);
            for inner in data.regions() {
                self.region(inner, levels.within(schedule.partition), singular)?;
            }
            if data.is_loop() {
                self.loops.pop();
            }
            self.way.pop();
        }
        Ok(())
    }

    /// Notes an access. What is none and does more than to give a value has to be known.
    fn access(&mut self, inst: Inst, singular: bool) -> Result<(), DirectiveError> {
        let function = self.program.function();
        let data = &function.insts[inst].data;
        let facts = data.facts(&self.program.module.intrinsics);
        let ptr = match (facts.source, data) {
            (Source::Memory { ptr, .. }, _) => Some(ptr),
            (
                _,
                InstData::Store { ptr, .. }
                | InstData::AtomicStore { ptr, .. }
                | InstData::AtomicRmw { ptr, .. }
                | InstData::AtomicCas { ptr, .. },
            ) => Some(*ptr),
            _ => None,
        };
        let Some(ptr) = ptr else {
            let is_known = self.program.is_mark(inst)
                || data.is_barrier()
                || data.is_local()
                || data.var_use().is_some();
            let acts = facts.reads || facts.writes;
            return match acts && !is_known {
                true => Err(DirectiveError::Unknown {
                    place: self.program.place(function.insts[inst].location),
                    what: "a call or an operation that may read or write any memory".to_owned(),
                }),
                false => Ok(()),
            };
        };
        let (base, steps) = path_of(function, ptr);
        let may_be_left_out = self.loops.iter().any(|held| {
            let mut bodies = function.insts[held.inst].data.regions().into_iter();
            bodies.any(|body| leaves(function, body))
        });
        if is_local(function, base) || is_constant(function, base) {
            return Ok(());
        }
        self.found.all.push(Access {
            inst,
            base,
            steps,
            reads: facts.reads,
            writes: facts.writes,
            way: self.way.clone(),
            loops: self.loops.clone(),
            singular,
            may_be_left_out,
        });
        Ok(())
    }
}

/// Whether a value is memory of the thread's own.
pub(crate) fn is_local(function: &Function, base: Value) -> bool {
    match function.values[base].def {
        ValueDef::Inst(inst) => function.insts[inst].data.is_local(),
        ValueDef::Param(_) | ValueDef::Index(_) => false,
    }
}

/// Whether a value is memory that no kernel writes.
pub(crate) fn is_constant(function: &Function, base: Value) -> bool {
    match function.values[base].def {
        ValueDef::Inst(inst) => matches!(function.insts[inst].data, InstData::GlobalAddr(_)),
        ValueDef::Param(_) | ValueDef::Index(_) => false,
    }
}
