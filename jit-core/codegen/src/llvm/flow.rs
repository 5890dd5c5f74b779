//! How control flows through a function of LLVM's: what comes before what on all ways, and which loops there are.

use std::collections::HashMap;

use inkwell::basic_block::BasicBlock;
use inkwell::values::{FunctionValue, InstructionValue};

use super::inspect::successors;

/// An instruction's place: the number of its block, and its own in the block.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Place {
    pub(crate) block: usize,
    pub(crate) at: usize,
}

/// The blocks of a function that can be reached, each after what dominates it (Cooper, Harvey, Kennedy: "A Simple, Fast
/// Dominance Algorithm", 2001).
pub(crate) struct Flow<'ctx> {
    pub(crate) blocks: Vec<BasicBlock<'ctx>>,
    numbers: HashMap<BasicBlock<'ctx>, usize>,
    places: HashMap<InstructionValue<'ctx>, Place>,
    /// The next block on all ways from the entry to a block; of the entry, itself.
    dominators: Vec<usize>,
    /// How many blocks are on all ways to a block.
    depths: Vec<usize>,
    /// The heads of the loops that a block is in.
    loops: Vec<Vec<usize>>,
}

impl<'ctx> Flow<'ctx> {
    /// Of a function that has a body.
    pub(crate) fn of(function: FunctionValue<'ctx>) -> Flow<'ctx> {
        let blocks = in_order(function);
        let numbered = blocks.iter().zip(0..).map(|(block, n)| (*block, n));
        let numbers: HashMap<_, usize> = numbered.collect();
        let mut before = vec![Vec::new(); blocks.len()];
        for (from, &block) in blocks.iter().enumerate() {
            for to in successors(block) {
                before[numbers[&to]].push(from);
            }
        }
        let dominators = dominators(&before);
        let mut depths = vec![0; blocks.len()];
        for block in 1..blocks.len() {
            depths[block] = depths[dominators[block]] + 1;
        }
        let mut flow = Flow {
            places: places(&blocks),
            loops: vec![Vec::new(); blocks.len()],
            blocks,
            numbers,
            dominators,
            depths,
        };
        flow.find_loops(&before);
        flow
    }

    /// Where an instruction is, unless nothing leads there.
    pub(crate) fn place(&self, instruction: InstructionValue<'ctx>) -> Option<Place> {
        self.places.get(&instruction).copied()
    }

    /// The end of a block, unless nothing leads there.
    pub(crate) fn end(&self, block: BasicBlock<'ctx>) -> Option<Place> {
        let block = *self.numbers.get(&block)?;
        let at = usize::MAX;
        Some(Place { block, at })
    }

    /// Of two places that are both on all ways to a third: whether one comes before the other.
    pub(crate) fn is_above(&self, first: Place, second: Place) -> bool {
        match first.block == second.block {
            true => first.at < second.at,
            false => self.depths[first.block] < self.depths[second.block],
        }
    }

    /// Whether a place is in no loop that the other one is not in.
    pub(crate) fn runs_as_often(&self, place: Place, other: Place) -> bool {
        let around = &self.loops[other.block];
        self.loops[place.block]
            .iter()
            .all(|head| around.contains(head))
    }

    /// For each block the last of the marked places that are on all ways to its end.
    pub(crate) fn last_above(&self, marked: &[Place]) -> Vec<Option<Place>> {
        let mut last: Vec<Option<Place>> = vec![None; self.blocks.len()];
        for &place in marked {
            last[place.block] = last[place.block].max(Some(place));
        }
        for block in 1..last.len() {
            last[block] = last[block].or(last[self.dominators[block]]);
        }
        last
    }

    /// The next block on all ways to a block.
    pub(crate) fn dominator(&self, block: usize) -> Option<usize> {
        (block > 0).then(|| self.dominators[block])
    }

    fn dominates(&self, block: usize, mut other: usize) -> bool {
        while self.depths[other] > self.depths[block] {
            other = self.dominators[other];
        }
        other == block
    }

    /// A branch back to what dominates it makes a loop of all that leads to it.
    fn find_loops(&mut self, before: &[Vec<usize>]) {
        for (head, before_head) in before.iter().enumerate() {
            let back = before_head.iter().copied();
            let mut left: Vec<usize> = back.filter(|&from| self.dominates(head, from)).collect();
            if left.is_empty() {
                continue;
            }
            self.loops[head].push(head);
            while let Some(block) = left.pop() {
                if self.loops[block].last() != Some(&head) {
                    self.loops[block].push(head);
                    left.extend(&before[block]);
                }
            }
        }
    }
}

/// The blocks that can be reached, each before those that it leads to but for the heads of loops.
fn in_order(function: FunctionValue<'_>) -> Vec<BasicBlock<'_>> {
    let (mut done, mut seen) = (Vec::new(), std::collections::HashSet::new());
    let mut open: Vec<(BasicBlock<'_>, Vec<BasicBlock<'_>>)> = Vec::new();
    if let Some(entry) = function.get_first_basic_block() {
        seen.insert(entry);
        open.push((entry, successors(entry)));
    }
    while let Some((block, next)) = open.last_mut() {
        match next.pop() {
            Some(next) if seen.insert(next) => open.push((next, successors(next))),
            Some(_) => {}
            None => {
                done.push(*block);
                open.pop();
            }
        }
    }
    done.reverse();
    done
}

fn places<'ctx>(blocks: &[BasicBlock<'ctx>]) -> HashMap<InstructionValue<'ctx>, Place> {
    let in_blocks = blocks.iter().enumerate();
    let places = in_blocks.flat_map(|(block, instructions)| {
        let numbered = instructions.get_instructions().enumerate();
        numbered.map(move |(at, instruction)| (instruction, Place { block, at }))
    });
    places.collect()
}

/// The dominator of each block, from the blocks that lead to it.
fn dominators(before: &[Vec<usize>]) -> Vec<usize> {
    const UNKNOWN: usize = usize::MAX;
    let mut dominators = vec![UNKNOWN; before.len()];
    if let Some(entry) = dominators.first_mut() {
        *entry = 0;
    }
    loop {
        let mut changed = false;
        for block in 1..before.len() {
            let known = before[block].iter().copied();
            let mut known = known.filter(|&from| dominators[from] != UNKNOWN);
            let Some(first) = known.next() else { continue };
            let common = known.fold(first, |a, b| meeting(&dominators, a, b));
            changed |= dominators[block] != common;
            dominators[block] = common;
        }
        if !changed {
            return dominators;
        }
    }
}

/// The last block that is above both.
fn meeting(dominators: &[usize], mut a: usize, mut b: usize) -> usize {
    while a != b {
        match a > b {
            true => a = dominators[a],
            false => b = dominators[b],
        }
    }
    a
}
