//! What has to hold of a program for a schedule, besides the order of its accesses: dimensions for the loops that are
//! distributed, ends of loops that all threads see, barriers that all threads come to.

use kiln_jit_core::ir::{Control, Inst, Region};

use crate::along::{Along, WARP};
use crate::apply::Levels;
use crate::arrays::assigned;
use crate::error::DirectiveError;
use crate::program::Program;
use crate::schedule::{Partition, Schedule};
use crate::uniform::Uniform;

/// Refuses what does not hold.
pub(crate) fn check(
    program: &Program,
    schedule: &Schedule,
    uniform: &Uniform,
) -> Result<(), DirectiveError> {
    let check = Check {
        program,
        schedule,
        uniform,
    };
    let body = program.function().body;
    check.region(body, &mut Vec::new(), &mut Around::default())
}

struct Check<'p> {
    program: &'p Program,
    schedule: &'p Schedule,
    uniform: &'p Uniform,
}

/// A loop around.
struct Open {
    partition: Partition,
    meets: bool,
}

/// What is around besides loops.
#[derive(Copy, Clone, Default)]
struct Around {
    levels: Levels,
    singular: bool,
}

impl Check<'_> {
    fn region(
        &self,
        region: Region,
        open: &mut Vec<Open>,
        around: &mut Around,
    ) -> Result<(), DirectiveError> {
        let function = self.program.function();
        for &inst in &function.regions[region].insts {
            let data = &function.insts[inst].data;
            self.inst(inst, open, *around)?;
            let number = self.program.number_of(inst);
            let held = number.map_or_else(Default::default, |number| self.schedule.loops[number]);
            let mut inner = Around {
                levels: around.levels.within(held.partition),
                singular: around.singular || self.program.singular.contains_key(&inst),
            };
            if data.is_loop() {
                let meets = self.uniform.meets(inst);
                let partition = held.partition;
                open.push(Open { partition, meets });
            }
            for region in data.regions() {
                self.region(region, open, &mut inner)?;
            }
            if data.is_loop() {
                open.pop();
            }
        }
        Ok(())
    }

    fn inst(&self, inst: Inst, open: &[Open], around: Around) -> Result<(), DirectiveError> {
        let node = &self.program.function().insts[inst];
        let refuse = |problem: &str| Err(self.program.placement(node.location, problem));
        if self.program.singular.contains_key(&inst) && around.levels.parts_threads() {
            return refuse(
                "`singular` within a loop over threads, of whose iterations the first thread has some only: put it \
                 outside of the loop, or take the clause for threads away",
            );
        }
        if assigned(self.program.function(), inst).is_some() && around.levels.parts_threads() {
            return refuse(
                "an array in shared memory is declared or assigned in a loop over threads, each of whose iterations has one of its \
                 own: declare it outside of the loop, or leave it to the threads by taking `#[shared]` away",
            );
        }
        if self.uniform.meets(inst) {
            self.meeting(inst)?;
        }
        match node.data.control() {
            Control::For { .. } => self.levels(inst, around),
            Control::Leave { depth, again } => match self.leaves(open, depth as usize, again) {
                Some(problem) => refuse(problem),
                None => Ok(()),
            },
            Control::Return { .. }
                if around.singular || open.iter().any(|held| held.partition.is_some()) =>
            {
                refuse(
                    "`return` ends the region for one thread, and in the sequential program for all that comes after: \
                     put what follows into an `if`",
                )
            }
            Control::Return { .. } | Control::Next | Control::If { .. } | Control::Loop { .. } => {
                Ok(())
            }
        }
    }

    /// Whether the grid has a dimension for a loop.
    fn levels(&self, inst: Inst, around: Around) -> Result<(), DirectiveError> {
        let Some(number) = self.program.number_of(inst) else {
            return Ok(());
        };
        let partition = self.schedule.loops[number].partition;
        let place = || {
            self.program
                .place(self.program.function().insts[inst].location)
        };
        let inner = around.levels.within(partition);
        let (blocks, threads) = (self.schedule.blocks.len(), self.schedule.threads.len());
        let deep = |level, what, of, dims| {
            let place = place();
            Err(DirectiveError::Level {
                place,
                level,
                what,
                of,
                dims,
            })
        };
        if partition.is_some() && around.singular {
            return Err(self.program.placement(
                self.program.function().insts[inst].location,
                "a loop within `singular`, which one thread of the block executes, is not distributed",
            ));
        }
        match () {
            () if partition.over_blocks.is_some() && inner.blocks > blocks => {
                deep(inner.blocks, "blocks", "`tblock`", blocks)
            }
            () if partition.over_threads.is_some() && inner.threads > threads => {
                deep(inner.threads, "threads", "`thread`", threads)
            }
            () => self.warps(inst, partition, around.levels),
        }
    }

    /// Whether blocks have the warps that a loop is distributed over, and no loop around goes over the same threads.
    fn warps(
        &self,
        inst: Inst,
        partition: Partition,
        around: Levels,
    ) -> Result<(), DirectiveError> {
        let Some(along) = around.along(partition) else {
            return Ok(());
        };
        let place = || {
            self.program
                .place(self.program.function().insts[inst].location)
        };
        let threads = &self.schedule.threads;
        let last = Along::Dim(threads.len() - 1);
        let what = match along {
            Along::Dim(_) => "the last dimension of threads",
            Along::Warps => "warps",
            Along::Lanes => "the lanes of a warp",
        };
        let taken = match along {
            Along::Dim(_) if along == last && (around.warps || around.lanes) => {
                Some("warps or their lanes")
            }
            Along::Warps if around.warps => Some(what),
            Along::Lanes if around.lanes => Some(what),
            Along::Warps | Along::Lanes if around.threads == threads.len() => {
                Some("the last dimension of threads")
            }
            _ => None,
        };
        if let Some(by) = taken {
            return Err(DirectiveError::Taken {
                place: place(),
                what,
                by,
            });
        }
        match threads[threads.len() - 1] {
            extent if extent % WARP != 0 && !matches!(along, Along::Dim(_)) => {
                Err(DirectiveError::Warps {
                    place: place(),
                    what,
                    threads: extent,
                })
            }
            _ => Ok(()),
        }
    }

    /// What is wrong with the end of a turn or a loop.
    fn leaves(&self, open: &[Open], depth: usize, again: bool) -> Option<&'static str> {
        let left = &open[open.len().saturating_sub(depth + 1)..];
        let (target, inside) = left.split_first()?;
        if left.iter().any(|held| held.meets) {
            return Some(
                "a loop with a barrier in it, or that stages slices, is left here, and all threads of the block come to the \
                 barrier: put what follows into an `if`, and the barrier outside of it",
            );
        }
        let ends = inside.iter().any(|held| held.partition.is_some());
        match ends || !again && target.partition.is_some() {
            true => Some(
                "`break` ends a loop that is distributed, whose later iterations other threads execute: take the \
                 clauses away, or test in each iteration whether there is something to do",
            ),
            false => None,
        }
    }

    /// Refuses what holds a barrier and does not let all threads to it.
    fn meeting(&self, inst: Inst) -> Result<(), DirectiveError> {
        let node = &self.program.function().insts[inst];
        let problem = match node.data.control() {
            Control::Loop { .. } => {
                "a barrier, or a loop that stages slices, in a loop that is no `for`, which threads may leave in different \
                 turns: count its turns by a `for`"
            }
            Control::If { cond, .. } if self.uniform.is_varying(cond) => {
                "a barrier, or a loop that stages slices, in an `if` whose condition threads of a block may have different: \
                 put it outside of it"
            }
            Control::For { bounds, .. }
                if bounds.iter().any(|bound| self.uniform.is_varying(*bound)) =>
            {
                "a barrier, or a loop that stages slices, in a loop whose bounds threads of a block may have different: let \
                 them be the same for all iterations of loops over threads"
            }
            _ => return Ok(()),
        };
        let place = self.program.place(node.location);
        Err(DirectiveError::Barrier { place, problem })
    }
}
