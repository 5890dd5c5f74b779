//! Iterations side by side in random nests, beside what each element meets in the sequential program's order.

use std::collections::HashMap;

use kiln::directives::{DirectiveError, OverBlocks, Partition, Program};

use super::{Counted, Levels, Nest, Node, Numbers, Tally, holds_barrier, is_wrong};

/// A turn of a loop, and who executes it.
#[derive(Clone, Debug)]
struct Turn<'n> {
    held: &'n Counted,
    turn: usize,
    block: usize,
    /// How many batches of the block come before.
    batch: usize,
}

/// What the sequential program does to each element, in its order: whether it writes, in which turns.
struct Trace<'n> {
    nest: &'n Nest,
    events: HashMap<(usize, i64), Vec<(bool, Vec<Turn<'n>>)>>,
}

impl<'n> Trace<'n> {
    fn run(
        &mut self,
        nodes: &'n [Node],
        indices: &mut Vec<i64>,
        turns: &mut Vec<Turn<'n>>,
        levels: Levels,
    ) {
        for node in nodes {
            match node {
                Node::Loop(held) => {
                    let Partition {
                        over_blocks,
                        over_threads,
                    } = held.partition;
                    let all = held.indices(indices);
                    let extent = |dims: &[u32], level: usize, is_over: bool| match is_over {
                        true => dims[level] as usize,
                        false => 1,
                    };
                    let blocks = extent(&self.nest.blocks, levels.blocks, over_blocks.is_some());
                    let threads =
                        extent(&self.nest.threads, levels.threads, over_threads.is_some());
                    let chunk = held.chunk(all.len(), blocks, threads);
                    let inner = levels.within(held.partition);
                    for (turn, index) in all.into_iter().enumerate() {
                        let (block, batch) = match over_blocks {
                            Some(OverBlocks::Cyclic) => {
                                (turn / threads % blocks, turn / threads / blocks)
                            }
                            Some(OverBlocks::Block) => (turn / chunk, turn % chunk / threads),
                            None => (0, turn / threads),
                        };
                        indices.push(index);
                        turns.push(Turn {
                            held,
                            turn,
                            block,
                            batch,
                        });
                        self.run(&held.body, indices, turns, inner);
                        turns.pop();
                        indices.pop();
                    }
                }
                Node::Store { to, from, .. } => {
                    let reads = from.iter().map(|element| (element, false));
                    for (element, writes) in reads.chain([(to, true)]) {
                        let at = (element.array, element.index.at(indices));
                        let event = (writes, turns.clone());
                        self.events.entry(at).or_default().push(event);
                    }
                }
                Node::Singular(body) => self.run(body, indices, turns, levels),
                Node::Barrier => {}
            }
        }
    }
}

/// Puts iterations of loops side by side, in the order of the text.
fn put_beside(nodes: &mut [Node], jams: &mut impl Iterator<Item = u32>) {
    for node in nodes {
        match node {
            Node::Loop(held) => {
                held.jam = jams.next().expect("there is one for each loop") as usize;
                put_beside(&mut held.body, jams);
            }
            Node::Singular(body) => put_beside(body, jams),
            Node::Store { .. } | Node::Barrier => {}
        }
    }
}

/// Whether two accesses to one element are in different iterations of a group that are executed side by side.
fn is_beside(nest: &Nest) -> bool {
    let mut trace = Trace {
        nest,
        events: HashMap::new(),
    };
    trace.run(
        &nest.nodes,
        &mut Vec::new(),
        &mut Vec::new(),
        Levels::default(),
    );
    let beside = |x: &[Turn<'_>], y: &[Turn<'_>]| {
        let is_one = |x: &Turn<'_>, y: &Turn<'_>| std::ptr::eq(x.held, y.held);
        let mut both = x.iter().zip(y);
        let parted = both.find(|(x, y)| !is_one(x, y) || x.turn != y.turn);
        parted.is_some_and(|(x, y)| {
            let group = x.held.jam;
            is_one(x, y) && x.block == y.block && x.batch / group == y.batch / group && group > 1
        })
    };
    trace.events.values().any(|events| {
        let pairs = events.iter().enumerate();
        let mut pairs = pairs.flat_map(|(at, x)| events[at + 1..].iter().map(move |y| (x, y)));
        pairs.any(|(x, y)| (x.0 || y.0) && beside(&x.1, &y.1))
    })
}

/// Random groups of iterations side by side in random nests that are accepted without, and that have no barriers:
/// none that depend on each other are accepted, and none is refused as wrong that do not. Chunks of blocks are others than
/// without.
///
/// # Errors
/// A kernel that cannot be described.
pub fn verify_side_by_side(seed: u64, count: usize) -> kiln::Result<Tally> {
    let mut numbers = Numbers(seed);
    let mut tally = Tally::default();
    for number in 0..count {
        let mut nest = Nest::random(&mut numbers);
        let program = Program::of(&nest.region()?)?;
        let mut schedule = program.schedule(&nest.blocks, &nest.threads);
        if holds_barrier(&nest.nodes) || program.verify(&schedule, &nest.known()).is_err() {
            continue;
        }
        let jams: Vec<u32> = (0..schedule.loops.len())
            .map(|_| 1 + numbers.below(3) as u32)
            .collect();
        for (held, &jam) in schedule.loops.iter_mut().zip(&jams) {
            held.jam = Some(jam);
        }
        put_beside(&mut nest.nodes, &mut jams.into_iter());
        let verified = program.verify(&schedule, &nest.known());
        let place = |what: &str| {
            format!("{what}: nest {number} of seed {seed}: {nest:#?}\n{schedule}\n{verified:?}")
        };
        match (&verified, is_beside(&nest) || is_wrong(&nest)) {
            (Ok(()), false) => tally.accepted += 1,
            (Ok(()), true) => panic!("{}", place("accepted and wrong")),
            (Err(DirectiveError::Dependence { .. }), true) => tally.wrong += 1,
            (Err(DirectiveError::Dependence { .. }), false) => {
                panic!("{}", place("refused and right"))
            }
            (Err(DirectiveError::CannotProve { .. }), _) => tally.unproved += 1,
            (Err(_), _) => panic!("{}", place("refused for something else")),
        }
    }
    Ok(tally)
}
