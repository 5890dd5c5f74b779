//! Random interchanges of loops, beside what they are by trial: whether two accesses to one element come in another order.

use std::collections::HashMap;

use kiln::directives::{DirectiveError, Program};

use super::{Counted, Nest, Node, Numbers, Tally, holds_barrier};

/// The statements of a nest in the order in which they are executed, each by its address and indices.
type Executed<'n> = Vec<(&'n Node, Vec<i64>)>;

/// Executes a nest, one of whose loops, if there is one, is interchanged with the one within.
fn order<'n>(
    nodes: &'n [Node],
    swapped: Option<&Counted>,
    indices: &mut Vec<i64>,
    executed: &mut Executed<'n>,
) {
    for node in nodes {
        match node {
            Node::Loop(held) if swapped.is_some_and(|swapped| std::ptr::eq(swapped, held)) => {
                let [Node::Loop(inner)] = &held.body[..] else {
                    unreachable!("a loop alone is in it");
                };
                // No bound of the inner one depends on the outer one.
                let own = inner.indices(&[&indices[..], &[0]].concat());
                for last in own {
                    for index in held.indices(indices) {
                        indices.extend([index, last]);
                        order(&inner.body, swapped, indices, executed);
                        indices.truncate(indices.len() - 2);
                    }
                }
            }
            Node::Loop(held) => {
                for index in held.indices(indices) {
                    indices.push(index);
                    order(&held.body, swapped, indices, executed);
                    indices.pop();
                }
            }
            Node::Store { .. } => executed.push((node, indices.clone())),
            Node::Singular(body) => order(body, swapped, indices, executed),
            Node::Barrier => {}
        }
    }
}

/// Whether two accesses to one element, one of which writes it, come in another order.
fn is_turned_round(nest: &Nest, swapped: &Counted) -> bool {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    order(&nest.nodes, None, &mut Vec::new(), &mut before);
    order(&nest.nodes, Some(swapped), &mut Vec::new(), &mut after);
    let key = |(node, indices): &(&Node, Vec<i64>)| (std::ptr::from_ref(*node), indices.clone());
    let times: HashMap<_, _> = after.iter().map(key).zip(0usize..).collect();
    let mut events: HashMap<(usize, i64), Vec<(usize, bool)>> = HashMap::new();
    for held in &before {
        let Node::Store { to, from, .. } = held.0 else {
            continue;
        };
        let reads = from.iter().map(|element| (element, false));
        for (element, writes) in reads.chain([(to, true)]) {
            let at = (element.array, element.index.at(&held.1));
            events
                .entry(at)
                .or_default()
                .push((times[&key(held)], writes));
        }
    }
    events.values().any(|events| {
        let pairs = events.iter().enumerate();
        let mut pairs = pairs.flat_map(|(at, x)| events[at + 1..].iter().map(move |y| (x, y)));
        pairs.any(|(x, y)| (x.1 || y.1) && x.0 > y.0)
    })
}

/// The loops of a nest, in the order of the text.
fn loops<'n>(nodes: &'n [Node], found: &mut Vec<&'n Counted>) {
    for node in nodes {
        match node {
            Node::Loop(held) => {
                found.push(held);
                loops(&held.body, found);
            }
            Node::Singular(body) => loops(body, found),
            Node::Store { .. } | Node::Barrier => {}
        }
    }
}

/// Interchanges of random loops that stand alone in another one, for one thread: none that turns an order round is accepted, and
/// none is refused that does not.
///
/// # Errors
/// A kernel that cannot be described.
pub fn verify_interchanged(seed: u64, count: usize) -> kiln::Result<Tally> {
    let mut numbers = Numbers(seed);
    let mut tally = Tally::default();
    for number in 0..count {
        let nest = Nest::random(&mut numbers);
        let mut all = Vec::new();
        loops(&nest.nodes, &mut all);
        let is_pair = |held: &Counted| matches!(held.body[..], [Node::Loop(_)]);
        let pairs: Vec<usize> = (0..all.len()).filter(|&at| is_pair(all[at])).collect();
        if holds_barrier(&nest.nodes) || pairs.is_empty() {
            continue;
        }
        let chosen = pairs[numbers.below(pairs.len() as u64) as usize];
        let program = Program::of(&nest.region()?)?;
        let ones = |dims: &[u32]| vec![1; dims.len()];
        let mut schedule = program.schedule(&ones(&nest.blocks), &ones(&nest.threads));
        schedule.loops[chosen].interchanged = true;
        let verified = program.verify(&schedule, &nest.known());
        let place = |what: &str| {
            format!("{what}: nest {number} of seed {seed}: {nest:#?}\n{schedule}\n{verified:?}")
        };
        let is_wrong = || is_turned_round(&nest, all[chosen]);
        match &verified {
            Ok(()) => {
                assert!(!is_wrong(), "{}", place("accepted and wrong"));
                tally.accepted += 1;
            }
            Err(DirectiveError::Dependence { .. }) => {
                assert!(is_wrong(), "{}", place("refused and right"));
                tally.wrong += 1;
            }
            Err(DirectiveError::CannotProve { .. } | DirectiveError::Transformation { .. }) => {
                tally.unproved += 1;
            }
            Err(_) => panic!("{}", place("refused for something else")),
        }
    }
    Ok(tally)
}
