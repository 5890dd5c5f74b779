//! Random nests whose loops are distributed over warps and lanes, too, and what such loops are by definition.

use kiln::directives::{OverThreads, Partition};
use kiln::prelude::*;

use super::{Counted, Nest, Node, Numbers, Outcome, Tally, each, execute, run};

/// The threads of a warp.
const WARP: u32 = 32;

/// Over what loops around are distributed.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Levels {
    pub(super) blocks: usize,
    pub(super) threads: usize,
    warps: bool,
    lanes: bool,
}

impl Levels {
    pub(super) fn within(self, partition: Partition) -> Levels {
        let over = |threads| partition.over_threads == Some(threads);
        Levels {
            blocks: self.blocks + usize::from(partition.over_blocks.is_some()),
            threads: self.threads + usize::from(over(OverThreads::Threads)),
            warps: self.warps || over(OverThreads::Warps),
            lanes: self.lanes || over(OverThreads::Lanes),
        }
    }

    /// Whether a loop around is distributed over threads of the block.
    pub(super) fn parts_threads(self) -> bool {
        self.threads > 0 || self.warps || self.lanes
    }

    /// How many threads, warps or lanes of a block a loop goes over, and which of them a thread is of.
    pub(super) fn place(self, over: OverThreads, place: &[u32], extents: &[u32]) -> (usize, usize) {
        let last = extents.len() - 1;
        let (at, of) = match over {
            OverThreads::Threads => (place[self.threads], extents[self.threads]),
            OverThreads::Warps => (place[last] / WARP, extents[last] / WARP),
            OverThreads::Lanes => (place[last] % WARP, WARP),
        };
        (at as usize, of as usize)
    }

    /// Whether a thread is the first of those that execute the same iterations.
    pub(super) fn is_first(self, place: &[u32]) -> bool {
        let (last, before) = place.split_last().expect("there is a dimension");
        let of_last = match (self.warps, self.lanes) {
            (false, false) if self.threads == place.len() => 0,
            (false, false) => *last,
            (true, false) => last % WARP,
            (false, true) => last / WARP,
            (true, true) => 0,
        };
        let before = before.iter().skip(self.threads);
        of_last == 0 && before.copied().all(|place| place == 0)
    }
}

/// Distributes loops over warps and lanes that are not distributed over threads, or over the last dimension, and lets loops over lanes
/// have more iterations.
fn distribute(numbers: &mut Numbers, nodes: &mut [Node], levels: Levels, dims: usize) {
    for node in nodes {
        let Node::Loop(held) = node else { continue };
        let is_last = levels.threads + 1 == dims;
        let is_open = match held.partition.over_threads {
            None => true,
            Some(_) => is_last,
        };
        let takes = |levels: Levels, over| match over {
            OverThreads::Threads => !is_last || !levels.warps && !levels.lanes,
            OverThreads::Warps => !levels.warps && levels.threads < dims,
            OverThreads::Lanes => !levels.lanes && levels.threads < dims,
        };
        if is_open && !numbers.one_in(3) {
            let over = [OverThreads::Warps, OverThreads::Lanes][numbers.below(2) as usize];
            held.partition.over_threads = Some(over);
        }
        let over = held.partition.over_threads;
        held.partition.over_threads = over.filter(|&over| takes(levels, over));
        if held.partition.over_threads == Some(OverThreads::Lanes) && numbers.one_in(2) {
            longer(numbers, held);
        }
        distribute(numbers, &mut held.body, levels.within(held.partition), dims);
    }
}

/// Gives a loop about as many iterations as a warp has lanes.
fn longer(numbers: &mut Numbers, held: &mut Counted) {
    held.cap = None;
    held.end.number += held.step * numbers.within(28, 34);
}

/// Whether what one thread of a block executes is within a loop over threads.
fn parts_singular(nodes: &[Node], levels: Levels) -> bool {
    nodes.iter().any(|node| match node {
        Node::Loop(held) => parts_singular(&held.body, levels.within(held.partition)),
        Node::Singular(_) => levels.parts_threads(),
        Node::Store { .. } | Node::Barrier => false,
    })
}

fn random(numbers: &mut Numbers) -> Nest {
    loop {
        let Nest {
            mut nodes,
            blocks,
            mut threads,
            ..
        } = Nest::random(numbers);
        let dims = threads.len();
        threads[dims - 1] = WARP * (1 + numbers.below(2) as u32);
        distribute(numbers, &mut nodes, Levels::default(), dims);
        if !parts_singular(&nodes, Levels::default()) {
            return Nest::fitted(nodes, blocks, threads);
        }
    }
}

/// Random nests with loops over warps and lanes, verified as by trial and not run.
///
/// # Errors
/// A kernel that cannot be described.
pub fn verify_warps(seed: u64, count: usize) -> kiln::Result<Tally> {
    each(seed, count, random, |_, _, _| Ok(()))
}

/// Runs random nests of which some loop is distributed over warps or lanes.
pub(super) fn random_nests_of_warps(jit: &Jit) -> Outcome {
    let mut with_warps = 0;
    each(
        0x3c6e_f372_fe94_f82b,
        260,
        random,
        |nest, program, schedule| {
            let text = schedule.to_string();
            if text.contains("over_warp") || text.contains("over_lane") {
                with_warps += 1;
                let mut wanted = nest.arrays();
                execute(&nest.nodes, &mut Vec::new(), &mut wanted);
                run(jit, nest, program, schedule, &wanted)?;
            }
            Ok(())
        },
    )?;
    assert!(with_warps >= 30, "{with_warps} with warps or lanes");
    Ok(())
}
