//! Which block and which thread of a grid executes an iteration of a loop, as constraints on integers.

use std::collections::HashMap;

use kiln_jit_core::ir::Inst;

use crate::accesses::{Access, Around};
use crate::affine::{Affine, Execution};
use crate::along::{Along, WARP};
use crate::integer::{Linear, System};
use crate::schedule::{OverBlocks, Schedule};

/// Blocks of the grid, or threads of a block.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Which {
    Block,
    Thread,
}

/// Along what places differ: a dimension of the grid's blocks, or what tells threads of a block apart.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Axis {
    Block(usize),
    Thread(Along),
}

impl Schedule {
    /// Along what blocks differ, or threads of a block.
    pub(crate) fn axes(&self, which: Which) -> Vec<Axis> {
        match which {
            Which::Block => (0..self.blocks.len()).map(Axis::Block).collect(),
            Which::Thread => self.all_along().into_iter().map(Axis::Thread).collect(),
        }
    }

    /// How many places there are along an axis.
    pub(crate) fn extent(&self, axis: Axis) -> u32 {
        match axis {
            Axis::Block(dim) => self.blocks[dim],
            Axis::Thread(along) => self.places(along),
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

    /// The loop around an access that is distributed over an axis: over warps and lanes that over all of their dimension is, too.
    pub(crate) fn loop_of(&self, access: &Access, axis: Axis) -> Option<Around> {
        let last = Along::Dim(self.schedule.threads.len().saturating_sub(1));
        let mut loops = access.loops.iter();
        let held = loops.find(|held| {
            let partition = held.schedule.partition;
            match axis {
                Axis::Block(dim) => partition.over_blocks.is_some() && held.levels.blocks == dim,
                Axis::Thread(along) => {
                    let own = held.levels.along(partition);
                    let is_of_warps = matches!(along, Along::Warps | Along::Lanes);
                    own == Some(along) || is_of_warps && own == Some(last)
                }
            }
        });
        held.copied()
    }

    /// The place along an axis of who executes a turn of a loop that is distributed over it.
    pub(crate) fn place(
        &mut self,
        affine: &mut Affine<'_>,
        system: &mut System,
        execution: &mut Execution,
        is_first: bool,
        (held, axis): (&Around, Axis),
    ) -> Option<Linear> {
        let owner = self.owner(affine, system, execution, is_first, held)?;
        let along = match axis {
            Axis::Block(_) => return Some(owner.block),
            Axis::Thread(along) => along,
        };
        if held.levels.along(held.schedule.partition) == Some(along) {
            return Some(owner.thread);
        }
        // A thread of the last dimension.
        let (lane, warp) = divided(system, &owner.thread, WARP.into())?;
        Some(match along {
            Along::Lanes => lane,
            Along::Warps | Along::Dim(_) => warp,
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
        let partition = held.schedule.partition;
        let threads = self.schedule.places_of(partition, held.levels).into();
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
