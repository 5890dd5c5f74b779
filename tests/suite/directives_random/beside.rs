//! Iterations side by side in random nests, beside what each element meets in the sequential program's order.

use std::collections::HashMap;

use kiln::directives::{DirectiveError, OverBlocks, Partition, Program};

use super::{Nest, Node, Numbers, Tally, holds_barrier};

/// A turn of a loop, and who executes it.
#[derive(Clone, Debug)]
struct Turn {
    /// The loop, in the order of the text.
    number: usize,
    turn: usize,
    block: usize,
    /// How many batches of the block come before.
    batch: usize,
}

/// What the sequential program does to each element, in its order: whether it writes, in which turns.
struct Trace<'n> {
    nest: &'n Nest,
    numbers: HashMap<*const Node, usize>,
    events: HashMap<(usize, i64), Vec<(bool, Vec<Turn>)>>,
}

impl Trace<'_> {
    fn number(&mut self, nodes: &[Node]) {
        for node in nodes {
            match node {
                Node::Loop(held) => {
                    let next = self.numbers.len();
                    self.numbers.insert(std::ptr::from_ref(node), next);
                    self.number(&held.body);
                }
                Node::Singular(body) => self.number(body),
                Node::Store { .. } | Node::Barrier => {}
            }
        }
    }

    fn run(
        &mut self,
        nodes: &[Node],
        indices: &mut Vec<i64>,
        turns: &mut Vec<Turn>,
        levels: [usize; 2],
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
                    let blocks = extent(&self.nest.blocks, levels[0], over_blocks.is_some());
                    let threads = extent(&self.nest.threads, levels[1], over_threads);
                    let chunk = all.len().div_ceil(blocks);
                    let inner = [
                        levels[0] + usize::from(over_blocks.is_some()),
                        levels[1] + usize::from(over_threads),
                    ];
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
                            number: self.numbers[&std::ptr::from_ref(node)],
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

/// Whether two accesses to one element are in different iterations of a group of `jams` that are executed side by
/// side.
fn is_beside(nest: &Nest, jams: &[u32]) -> bool {
    let mut trace = Trace {
        nest,
        numbers: HashMap::new(),
        events: HashMap::new(),
    };
    trace.number(&nest.nodes);
    trace.run(&nest.nodes, &mut Vec::new(), &mut Vec::new(), [0, 0]);
    let beside = |x: &[Turn], y: &[Turn]| {
        let mut both = x.iter().zip(y);
        let parted = both.find(|(x, y)| (x.number, x.turn) != (y.number, y.turn));
        parted.is_some_and(|(x, y)| {
            let group = jams[x.number] as usize;
            x.number == y.number
                && x.block == y.block
                && x.batch / group == y.batch / group
                && group > 1
        })
    };
    trace.events.values().any(|events| {
        let pairs = events.iter().enumerate();
        let mut pairs = pairs.flat_map(|(at, x)| events[at + 1..].iter().map(move |y| (x, y)));
        pairs.any(|(x, y)| (x.0 || y.0) && beside(&x.1, &y.1))
    })
}

/// Random groups of iterations side by side in random nests that are accepted without, and that have no barriers:
/// none that depend on each other are accepted, and none is refused as wrong that do not.
///
/// # Errors
/// A kernel that cannot be described.
pub fn verify_side_by_side(seed: u64, count: usize) -> kiln::Result<Tally> {
    let mut numbers = Numbers(seed);
    let mut tally = Tally::default();
    for number in 0..count {
        let nest = Nest::random(&mut numbers);
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
        let verified = program.verify(&schedule, &nest.known());
        let place = |what: &str| {
            format!("{what}: nest {number} of seed {seed}: {nest:#?}\n{schedule}\n{verified:?}")
        };
        match (&verified, is_beside(&nest, &jams)) {
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
