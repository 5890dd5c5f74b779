//! Which block and which thread of a grid executes an iteration of a loop, as constraints on integers.

use std::collections::HashMap;

use kiln_jit_core::ir::Inst;

use crate::accesses::{Access, Around};
use crate::affine::{Affine, Execution};
use crate::integer::{Linear, System};
use crate::schedule::{OverBlocks, Schedule};

/// Blocks of the grid, or threads of a block.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Which {
    Block,
    Thread,
}

impl Schedule {
    /// The extents of the grid's blocks or threads.
    pub(crate) fn dims(&self, which: Which) -> &[u32] {
        match which {
            Which::Block => &self.blocks,
            Which::Thread => &self.threads,
        }
    }
}

/// Who executes a turn of a loop.
#[derive(Clone, Debug)]
struct Owner {
    block: Linear,
    thread: Linear,
    /// How many batches of the block come before that of the turn.
    batch: Linear,
}

/// Who executes the turns of loops, in a system.
pub(crate) struct Owners<'s> {
    schedule: &'s Schedule,
    /// By loop, and by whether it is that around the first of two accesses.
    known: HashMap<(Inst, bool), Owner>,
}

impl<'s> Owners<'s> {
    /// No loops yet.
    pub(crate) fn new(schedule: &'s Schedule) -> Owners<'s> {
        Owners {
            schedule,
            known: HashMap::new(),
        }
    }

    /// The loop around an access that is distributed over a dimension.
    pub(crate) fn loop_of(&self, access: &Access, which: Which, dim: usize) -> Option<Around> {
        let mut loops = access.loops.iter();
        let held = loops.find(|held| match which {
            Which::Block => {
                held.schedule.partition.over_blocks.is_some() && held.levels.blocks == dim
            }
            Which::Thread => held.schedule.partition.over_threads && held.levels.threads == dim,
        });
        held.copied()
    }

    /// The place along its dimension of who executes a turn.
    pub(crate) fn place(
        &mut self,
        affine: &mut Affine<'_>,
        system: &mut System,
        execution: &mut Execution,
        is_first: bool,
        held: &Around,
        which: Which,
    ) -> Option<Linear> {
        let owner = self.owner(affine, system, execution, is_first, held)?;
        Some(match which {
            Which::Block => owner.block,
            Which::Thread => owner.thread,
        })
    }

    /// The batch of its block that a turn is of.
    pub(crate) fn batch(
        &mut self,
        affine: &mut Affine<'_>,
        system: &mut System,
        execution: &mut Execution,
        is_first: bool,
        held: &Around,
    ) -> Option<Linear> {
        Some(self.owner(affine, system, execution, is_first, held)?.batch)
    }

    fn owner(
        &mut self,
        affine: &mut Affine<'_>,
        system: &mut System,
        execution: &mut Execution,
        is_first: bool,
        held: &Around,
    ) -> Option<Owner> {
        if let Some(owner) = self.known.get(&(held.inst, is_first)) {
            return Some(owner.clone());
        }
        let atom = affine.turn(held.inst);
        let turn = Linear::variable(execution.variable(affine, system, atom)?);
        let count = affine.turns(held.inst).and_then(|turns| turns.count);
        let blocks = i128::from(*self.schedule.blocks.get(held.levels.blocks).unwrap_or(&1));
        let threads = i128::from(*self.schedule.threads.get(held.levels.threads).unwrap_or(&1));
        let partition = held.schedule.partition;
        let threads = if partition.over_threads { threads } else { 1 };
        let owner = match partition.over_blocks {
            Some(OverBlocks::Cyclic) => {
                let (thread, group) = divided(system, &turn, threads)?;
                let (block, batch) = divided(system, &group, blocks)?;
                Owner {
                    block,
                    thread,
                    batch,
                }
            }
            Some(OverBlocks::Block) if blocks > 1 => match count {
                Some(count) => {
                    let chunk = held.schedule.chunk(count, [blocks, threads]);
                    in_chunks(system, &turn, chunk, threads)?
                }
                None => {
                    // Chunks of another size each time.
                    execution.is_exact = false;
                    let block = within(system, blocks)?;
                    let thread = within(system, threads)?;
                    let batch = Linear::variable(system.variable());
                    Owner {
                        block,
                        thread,
                        batch,
                    }
                }
            },
            Some(OverBlocks::Block) | None => {
                let (thread, batch) = divided(system, &turn, threads)?;
                let block = Linear::number(0);
                Owner {
                    block,
                    thread,
                    batch,
                }
            }
        };
        self.known.insert((held.inst, is_first), owner.clone());
        Some(owner)
    }
}

/// Who executes a turn of a loop that blocks have in chunks.
fn in_chunks(system: &mut System, turn: &Linear, chunk: i128, threads: i128) -> Option<Owner> {
    let (own, block) = divided(system, turn, chunk.max(1))?;
    let (thread, batch) = divided(system, &own, threads)?;
    Some(Owner {
        block,
        thread,
        batch,
    })
}

/// Remainder and quotient of a sum that is 0 or more.
pub(crate) fn divided(system: &mut System, of: &Linear, by: i128) -> Option<(Linear, Linear)> {
    if by == 1 {
        return Some((Linear::number(0), of.clone()));
    }
    let rest = within(system, by)?;
    let quotient = Linear::variable(system.variable());
    let whole = rest.plus(&quotient, by)?;
    system.equal.push(of.plus(&whole, -1)?);
    Some((rest, quotient))
}

/// A number from 0 to below another one.
fn within(system: &mut System, below: i128) -> Option<Linear> {
    let number = Linear::variable(system.variable());
    system.at_least.push(number.clone());
    system
        .at_least
        .push(Linear::number(below - 1).plus(&number, -1)?);
    Some(number)
}
