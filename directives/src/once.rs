//! Loops of which a thread has one turn at most, or one group of turns side by side, in a launch: for each there is one test,
//! and no loop.

use std::collections::HashSet;

use kiln_jit_core::ir::{Constant, Control, Function, Inst, Region};

use crate::affine::{Affine, Known};
use crate::apply::Levels;
use crate::integer::ceil;
use crate::program::Program;
use crate::schedule::{LoopSchedule, OverBlocks, Schedule};

/// Whether a thread has one turn of a loop at most, or one group of them.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Once {
    /// A thread may have more.
    No,
    /// In the launches that the kernel is for.
    Known,
    /// A launch in which a thread has more is to be ended.
    Asserted,
}

/// The loops of which a thread has one group of iterations at most, in a launch with such arguments.
pub(crate) fn once(program: &Program, schedule: &Schedule, known: &[Known]) -> HashSet<Inst> {
    let mut affine = Affine::new(program.function(), known);
    let mut search = Search {
        program,
        schedule,
        affine: &mut affine,
        found: HashSet::new(),
    };
    search.region(program.function().body, Levels::default());
    search.found
}

/// Puts what an `if` holds in its place where the condition is known to hold: a loop of one turn that each thread has.
pub(crate) fn always_entered(function: &mut Function, region: Region) {
    let insts = std::mem::take(&mut function.regions[region].insts);
    let mut list = Vec::with_capacity(insts.len());
    for inst in insts {
        for inner in function.insts[inst].data.regions() {
            always_entered(function, inner);
        }
        match function.insts[inst].data.control() {
            Control::If {
                cond,
                then_region,
                else_region: None,
            } if function.constant(cond) == Some(Constant::Bool(true)) => {
                list.append(&mut function.regions[then_region].insts);
            }
            _ => list.push(inst),
        }
    }
    function.regions[region].insts = list;
}

struct Search<'a, 'p> {
    program: &'p Program,
    schedule: &'a Schedule,
    affine: &'a mut Affine<'p>,
    found: HashSet<Inst>,
}

impl Search<'_, '_> {
    fn region(&mut self, region: Region, levels: Levels) {
        let function = self.program.function();
        for &inst in &function.regions[region].insts {
            let number = self.program.number_of(inst);
            let held = number.map_or_else(Default::default, |number| self.schedule.loops[number]);
            if held.partition.is_some() && self.is_once(inst, held, levels) {
                self.found.insert(inst);
            }
            for region in function.insts[inst].data.regions() {
                self.region(region, levels.within(held.partition));
            }
        }
    }

    fn is_once(&mut self, inst: Inst, held: LoopSchedule, levels: Levels) -> bool {
        let Some(turns) = self.affine.turns(inst) else {
            return false;
        };
        let (partition, jammed) = (held.partition, i128::from(held.jammed()));
        let blocks = self.schedule.blocks.get(levels.blocks);
        let blocks = blocks.filter(|_| partition.over_blocks.is_some());
        let blocks = blocks.map_or(1, |&extent| i128::from(extent));
        let threads = i128::from(self.schedule.places_of(partition, levels));
        let most = turns.most.max(0);
        let fits = match partition.over_blocks {
            Some(OverBlocks::Block) => {
                held.chunk(most, [blocks.max(1), threads]) <= threads * jammed
            }
            Some(OverBlocks::Cyclic) | None => ceil(most, threads.max(1)) <= blocks * jammed,
        };
        // Products of these are numbers of the type that iterations are counted in.
        fits && blocks * threads * jammed < 1 << 31
    }
}
