//! Random nests of loops with random directives, beside what they are by definition: who executes what when, by
//! trial over all threads, and what the sequential program gives, in plain Rust.

use std::collections::HashMap;

use kiln::directives::{
    DirectiveError, Known, OverBlocks, OverThreads, Partition, Program, Schedule, Slices, marks,
};
use kiln::prelude::*;

use super::{Outcome, chapter};

mod arrays;
mod beside;
mod computed;
mod interchanged;
mod transformed;
mod warps;

pub use beside::verify_side_by_side;
pub use interchanged::verify_interchanged;
use transformed::transformed;
pub use warps::verify_warps;
use warps::{Levels, random_nests_of_warps};

chapter![
    random_nests,
    random_computed_nests,
    random_nests_with_arrays,
    random_nests_of_warps
];

/// Numbers from a seed (xorshift64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }

    fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }

    fn within(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as u64) as i64
    }
}

/// An index: a sum of the indices of the loops around, outermost first, times numbers, and a number.
#[derive(Clone, Debug)]
struct Sum {
    factors: Vec<i64>,
    number: i64,
}

impl Sum {
    fn random(numbers: &mut Numbers, loops: usize) -> Sum {
        let factors = (0..loops).map(|_| match numbers.one_in(3) {
            true => 0,
            false => numbers.within(-1, 4),
        });
        Sum {
            factors: factors.collect(),
            number: numbers.within(0, 3),
        }
    }

    fn at(&self, indices: &[i64]) -> i64 {
        self.number
            + self
                .factors
                .iter()
                .zip(indices)
                .map(|(factor, index)| factor * index)
                .sum::<i64>()
    }

    fn build<'k>(&self, k: &'k KernelBuilder, indices: &[Val<'k>]) -> Val<'k> {
        let number = k.lit(Type::I32, self.number);
        let terms = self.factors.iter().zip(indices);
        let terms = terms.filter(|(factor, _)| **factor != 0);
        terms.fold(number, |sum, (&factor, &index)| {
            sum + index * k.lit(Type::I32, factor)
        })
    }
}

/// An element of one of three arrays, the last of which is only read.
#[derive(Clone, Debug)]
struct Element {
    array: usize,
    index: Sum,
}

impl Element {
    fn random(numbers: &mut Numbers, loops: usize, arrays: u64) -> Element {
        Element {
            array: numbers.below(arrays) as usize,
            index: Sum::random(numbers, loops),
        }
    }
}

#[derive(Clone, Debug)]
enum Node {
    Loop(Counted),
    /// The element becomes the sum of the others, the last index and a number.
    Store {
        to: Element,
        from: Vec<Element>,
        number: u32,
    },
    Barrier,
    Singular(Vec<Node>),
}

#[derive(Clone, Debug)]
struct Counted {
    start: i64,
    end: Sum,
    /// Another end of a loop that counts up: the nearer one holds.
    cap: Option<i64>,
    step: i64,
    partition: Partition,
    /// How many iterations a thread executes side by side.
    jam: usize,
    body: Vec<Node>,
}

impl Counted {
    /// How many of `all` iterations a block has in contiguous chunks.
    fn chunk(&self, all: usize, blocks: usize, threads: usize) -> usize {
        let group = if self.jam == 1 { 1 } else { threads * self.jam };
        all.div_ceil(blocks).next_multiple_of(group)
    }

    fn indices(&self, around: &[i64]) -> Vec<i64> {
        let (mut at, end) = (self.start, self.end.at(around));
        let end = self.cap.map_or(end, |cap| end.min(cap));
        let mut all = Vec::new();
        while if self.step > 0 { at < end } else { at > end } {
            all.push(at);
            at += self.step;
        }
        all
    }
}

/// A nest with the extents of its grid and the lengths of its arrays.
#[derive(Clone, Debug)]
struct Nest {
    nodes: Vec<Node>,
    blocks: Vec<u32>,
    threads: Vec<u32>,
    lengths: [i64; 3],
}

impl Nest {
    fn random(numbers: &mut Numbers) -> Nest {
        let dims = |numbers: &mut Numbers| {
            (0..1 + numbers.below(2))
                .map(|_| 1 + numbers.below(3) as u32)
                .collect()
        };
        let (blocks, threads): (Vec<u32>, Vec<u32>) = (dims(numbers), dims(numbers));
        let with_barriers = numbers.one_in(3);
        let mut make = Make {
            numbers,
            with_barriers,
            dims: [blocks.len(), threads.len()],
        };
        let nodes = make.list(0, Levels::default(), false);
        Nest::fitted(nodes, blocks, threads)
    }

    /// A nest with arrays that have the elements that it uses.
    fn fitted(mut nodes: Vec<Node>, blocks: Vec<u32>, threads: Vec<u32>) -> Nest {
        let mut ends = [(0, 0); 3];
        each_element(&nodes, &mut Vec::new(), &mut |element, indices| {
            let at = element.index.at(indices);
            let (low, high) = &mut ends[element.array];
            (*low, *high) = ((*low).min(at), (*high).max(at));
        });
        let shift = ends.map(|(low, _)| -low);
        shift_indices(&mut nodes, shift);
        Nest {
            nodes,
            blocks,
            threads,
            lengths: ends.map(|(low, high)| high - low + 1),
        }
    }

    fn region(&self) -> kiln::Result<DeviceFn> {
        DeviceFn::build("nest", |k| {
            let [a, b] = ["a", "b"].map(|name| k.slice_mut(name, Type::U32));
            let arrays = [a, b, k.slice("c", Type::U32)].map(Array::Slice);
            build(k, &self.nodes, &arrays, &mut Vec::new());
        })
    }

    fn known(&self) -> [Known; 3] {
        self.lengths.map(|length| Known::Length(length as u64))
    }

    fn arrays(&self) -> [Vec<u32>; 3] {
        self.lengths
            .map(|length| (0..length as u32).map(|i| i * 7 % 13).collect())
    }
}

/// What makes nests.
struct Make<'n> {
    numbers: &'n mut Numbers,
    with_barriers: bool,
    dims: [usize; 2],
}

impl Make<'_> {
    fn list(&mut self, loops: usize, levels: Levels, singular: bool) -> Vec<Node> {
        let mut nodes = Vec::new();
        for _ in 0..1 + self.numbers.below(2) {
            let node = match self.numbers.below(8) {
                0..4 if loops < 3 => self.counted(loops, levels, singular),
                4 if self.with_barriers && !singular => Node::Barrier,
                5 if !singular && !levels.parts_threads() && loops > 0 => {
                    Node::Singular(self.list(loops, levels, true))
                }
                _ => self.store(loops),
            };
            nodes.push(node);
        }
        nodes
    }

    fn store(&mut self, loops: usize) -> Node {
        let to = Element::random(self.numbers, loops, 2);
        let mut from: Vec<_> = (0..self.numbers.below(3))
            .map(|_| Element::random(self.numbers, loops, 3))
            .collect();
        if self.numbers.one_in(3) {
            from.push(to.clone());
        }
        Node::Store {
            to,
            from,
            number: self.numbers.below(100) as u32,
        }
    }

    fn counted(&mut self, loops: usize, levels: Levels, singular: bool) -> Node {
        let step = [1, 1, 2, -1][self.numbers.below(4) as usize];
        let start = self.numbers.within(0, 2);
        let mut factors = vec![0; loops];
        if loops > 0 && self.numbers.one_in(5) {
            factors[self.numbers.below(loops as u64) as usize] = 1;
        }
        let far = self.numbers.within(-1, 5) * step;
        let cap = (step > 0 && self.numbers.one_in(4)).then(|| self.numbers.within(1, 5));
        let mut partition = Partition::default();
        if !singular {
            let over_blocks = [None, Some(OverBlocks::Block), Some(OverBlocks::Cyclic)]
                [self.numbers.below(3) as usize];
            partition.over_blocks = over_blocks.filter(|_| levels.blocks < self.dims[0]);
            let over_threads = levels.threads < self.dims[1] && self.numbers.one_in(2);
            partition.over_threads = over_threads.then_some(OverThreads::Threads);
        }
        let body = self.list(loops + 1, levels.within(partition), singular);
        Node::Loop(Counted {
            start,
            end: Sum {
                factors,
                number: start + far,
            },
            cap,
            step,
            partition,
            jam: 1,
            body,
        })
    }
}

/// Calls `f` for each element that is used, with the indices of the loops around.
fn each_element(nodes: &[Node], indices: &mut Vec<i64>, f: &mut impl FnMut(&Element, &[i64])) {
    for node in nodes {
        match node {
            Node::Loop(held) => {
                for index in held.indices(indices) {
                    indices.push(index);
                    each_element(&held.body, indices, f);
                    indices.pop();
                }
            }
            Node::Store { to, from, .. } => from
                .iter()
                .chain([to])
                .for_each(|element| f(element, indices)),
            Node::Singular(body) => each_element(body, indices, f),
            Node::Barrier => {}
        }
    }
}

fn shift_indices(nodes: &mut [Node], by: [i64; 3]) {
    for node in nodes {
        match node {
            Node::Loop(Counted { body, .. }) | Node::Singular(body) => shift_indices(body, by),
            Node::Store { to, from, .. } => {
                from.iter_mut()
                    .chain([to])
                    .for_each(|element| element.index.number += by[element.array]);
            }
            Node::Barrier => {}
        }
    }
}

/// What an element is of.
#[derive(Copy, Clone)]
enum Array<'k> {
    Slice(Val<'k>),
    OfBlock(Place<'k>),
}

impl<'k> Array<'k> {
    fn at(self, index: Val<'k>) -> Place<'k> {
        match self {
            Array::Slice(slice) => slice.at(index),
            Array::OfBlock(array) => array.at(index),
        }
    }
}

fn build<'k>(
    k: &'k KernelBuilder,
    nodes: &[Node],
    arrays: &[Array<'k>; 3],
    indices: &mut Vec<Val<'k>>,
) {
    for node in nodes {
        match node {
            Node::Loop(held) => {
                let Partition {
                    over_blocks,
                    over_threads,
                } = held.partition;
                if held.partition.is_some() {
                    let blocks = match over_blocks {
                        None => marks::NOT_OVER_BLOCKS,
                        Some(OverBlocks::Block) => marks::BLOCK,
                        Some(OverBlocks::Cyclic) => marks::CYCLIC,
                    };
                    let threads = match over_threads {
                        None => marks::NOT_OVER_THREADS,
                        Some(OverThreads::Threads) => marks::THREADS,
                        Some(OverThreads::Warps) => marks::WARPS,
                        Some(OverThreads::Lanes) => marks::LANES,
                    };
                    marks::partition::build(k, blocks, threads);
                }
                let (start, step) = (k.lit(Type::I32, held.start), k.lit(Type::I32, held.step));
                k.for_loop(
                    start,
                    match held.cap {
                        Some(cap) => held.end.build(k, indices).min(k.lit(Type::I32, cap)),
                        None => held.end.build(k, indices),
                    },
                    step,
                    Unroll::Auto,
                    |index| {
                        indices.push(index);
                        build(k, &held.body, arrays, indices);
                        indices.pop();
                    },
                );
            }
            Node::Store { to, from, number } => {
                let last = indices
                    .last()
                    .map_or(k.lit(Type::U32, 0), |index| index.cast(Type::U32));
                let mut sum = last + *number;
                for element in from {
                    sum = sum * 3
                        + arrays[element.array]
                            .at(element.index.build(k, indices))
                            .get();
                }
                arrays[to.array].at(to.index.build(k, indices)).set(sum);
            }
            Node::Barrier => k.barrier(),
            Node::Singular(body) => {
                k.if_(marks::singular::build(k), || {
                    build(k, body, arrays, indices)
                });
            }
        }
    }
}

/// The sequential program in Rust.
fn execute(nodes: &[Node], indices: &mut Vec<i64>, arrays: &mut [Vec<u32>; 3]) {
    for node in nodes {
        match node {
            Node::Loop(held) => {
                for index in held.indices(indices) {
                    indices.push(index);
                    execute(&held.body, indices, arrays);
                    indices.pop();
                }
            }
            Node::Store { to, from, number } => {
                let mut sum = (indices.last().copied().unwrap_or(0) as u32).wrapping_add(*number);
                for element in from {
                    let value = arrays[element.array][element.index.at(indices) as usize];
                    sum = sum.wrapping_mul(3).wrapping_add(value);
                }
                arrays[to.array][to.index.at(indices) as usize] = sum;
            }
            Node::Singular(body) => execute(body, indices, arrays),
            Node::Barrier => {}
        }
    }
}

/// An access to an element: by whom, and behind how many barriers.
#[derive(Clone, Debug)]
struct Event {
    /// The place in the sequential program's order.
    time: usize,
    writes: bool,
    block: usize,
    thread: usize,
    barriers: usize,
}

/// What a thread does.
struct Thread<'n> {
    nest: &'n Nest,
    blocks: Vec<u32>,
    threads: Vec<u32>,
    number: [usize; 2],
    barriers: usize,
    /// By statement (its address) and indices: when the sequential program executes it.
    times: &'n HashMap<(*const Node, Vec<i64>), usize>,
    events: &'n mut HashMap<(usize, i64), Vec<Event>>,
}

fn holds_barrier(nodes: &[Node]) -> bool {
    nodes.iter().any(|node| match node {
        Node::Barrier => true,
        Node::Loop(Counted { body, .. }) | Node::Singular(body) => holds_barrier(body),
        Node::Store { .. } => false,
    })
}

impl Thread<'_> {
    fn run(
        &mut self,
        nodes: &[Node],
        indices: &mut Vec<i64>,
        levels: Levels,
        singular: bool,
        active: bool,
    ) {
        for node in nodes {
            match node {
                Node::Barrier => self.barriers += 1,
                Node::Singular(body) => {
                    let first = self.threads.iter().all(|&place| place == 0);
                    self.run(body, indices, levels, true, active && first);
                }
                Node::Store { to, from, .. } if active => {
                    let time = self.times[&(std::ptr::from_ref(node), indices.clone())];
                    for element in from {
                        self.note(element, indices, 2 * time, false);
                    }
                    let mut blocks = self.blocks[levels.blocks..].iter();
                    if blocks.all(|&place| place == 0)
                        && (singular || levels.is_first(&self.threads))
                    {
                        self.note(to, indices, 2 * time + 1, true);
                    }
                }
                Node::Store { .. } => {}
                Node::Loop(held) => self.turns(held, indices, levels, singular, active),
            }
        }
    }

    fn turns(
        &mut self,
        held: &Counted,
        indices: &mut Vec<i64>,
        levels: Levels,
        singular: bool,
        active: bool,
    ) {
        let all = held.indices(indices);
        let Partition {
            over_blocks,
            over_threads,
        } = held.partition;
        let block = over_blocks.map(|_| {
            (
                self.blocks[levels.blocks] as usize,
                self.nest.blocks[levels.blocks] as usize,
            )
        });
        let thread = over_threads.map(|over| levels.place(over, &self.threads, &self.nest.threads));
        let group = thread.map_or(1, |(_, threads)| threads);
        let share: Vec<usize> = match (block, over_blocks) {
            (Some((at, of)), Some(OverBlocks::Block)) => {
                let chunk = held.chunk(all.len(), of, group);
                (0..all.len()).filter(|k| k / chunk == at).collect()
            }
            (Some((at, of)), _) => (0..all.len()).filter(|k| k / group % of == at).collect(),
            (None, _) => (0..all.len()).collect(),
        };
        let inner = levels.within(held.partition);
        for batch in share.chunks(group) {
            let own = thread.map_or(batch.first(), |(at, _)| batch.get(at));
            match own {
                Some(&k) => {
                    indices.push(all[k]);
                    self.run(&held.body, indices, inner, singular, active);
                    indices.pop();
                }
                // It meets the others nevertheless, whose barriers do not depend on the iteration.
                None if holds_barrier(&held.body) => {
                    indices.push(all[batch[0]]);
                    self.run(&held.body, indices, inner, singular, false);
                    indices.pop();
                }
                None => {}
            }
        }
    }

    fn note(&mut self, element: &Element, indices: &[i64], time: usize, writes: bool) {
        let [block, thread] = self.number;
        let event = Event {
            time,
            writes,
            block,
            thread,
            barriers: self.barriers,
        };
        let at = (element.array, element.index.at(indices));
        self.events.entry(at).or_default().push(event);
    }
}

fn times(
    nodes: &[Node],
    indices: &mut Vec<i64>,
    times_of: &mut HashMap<(*const Node, Vec<i64>), usize>,
) {
    for node in nodes {
        match node {
            Node::Loop(held) => {
                for index in held.indices(indices) {
                    indices.push(index);
                    times(&held.body, indices, times_of);
                    indices.pop();
                }
            }
            Node::Store { .. } => {
                let next = times_of.len();
                times_of.insert((std::ptr::from_ref(node), indices.clone()), next);
            }
            Node::Singular(body) => times(body, indices, times_of),
            Node::Barrier => {}
        }
    }
}

/// The places along each dimension of each number.
fn places(dims: &[u32]) -> Vec<Vec<u32>> {
    let mut all = vec![Vec::new()];
    for &dim in dims {
        let longer = |place: &Vec<u32>| {
            let place = place.clone();
            (0..dim).map(move |last| [place.clone(), vec![last]].concat())
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

/// Whether two accesses to one element may come in another order than in the sequential program.
fn is_wrong(nest: &Nest) -> bool {
    let (mut times_of, mut events) = (HashMap::new(), HashMap::new());
    times(&nest.nodes, &mut Vec::new(), &mut times_of);
    for (block, blocks) in places(&nest.blocks).into_iter().enumerate() {
        for (thread, threads) in places(&nest.threads).into_iter().enumerate() {
            let mut one = Thread {
                nest,
                blocks: blocks.clone(),
                threads,
                number: [block, thread],
                barriers: 0,
                times: &times_of,
                events: &mut events,
            };
            one.run(&nest.nodes, &mut Vec::new(), Levels::default(), false, true);
        }
    }
    events.values().any(|events| {
        events.iter().any(|x| {
            events.iter().any(|y| {
                let matters = x.time < y.time && (x.writes || y.writes);
                let is_one = (x.block, x.thread) == (y.block, y.thread);
                matters && !is_one && !(x.block == y.block && x.barriers < y.barriers)
            })
        })
    })
}

/// What came of random nests.
#[derive(Debug, Default)]
pub struct Tally {
    /// Accepted, and right by trial.
    pub accepted: usize,
    /// Refused, and wrong by trial.
    pub wrong: usize,
    /// Refused as it cannot be proved, or for a barrier or a grid.
    pub unproved: usize,
    /// Refused as wrong, and right by trial: barriers that are not seen to keep the order.
    pub strict: usize,
}

/// Random nests from a seed: none that is wrong by trial is accepted, none without barriers is refused as wrong that
/// is right. `run` is called with those that are accepted.
fn each_nest(
    seed: u64,
    count: usize,
    run: impl FnMut(&Nest, &Program, &Schedule) -> kiln::Result<()>,
) -> kiln::Result<Tally> {
    each(seed, count, Nest::random, run)
}

/// The same, of nests that are made so.
fn each(
    seed: u64,
    count: usize,
    make: impl Fn(&mut Numbers) -> Nest,
    mut run: impl FnMut(&Nest, &Program, &Schedule) -> kiln::Result<()>,
) -> kiln::Result<Tally> {
    let mut numbers = Numbers(seed);
    let mut tally = Tally::default();
    for number in 0..count {
        let nest = make(&mut numbers);
        let program = Program::of(&nest.region()?)?;
        let schedule = program.schedule(&nest.blocks, &nest.threads);
        let verified = program.verify(&schedule, &nest.known());
        let place = |what: &str| {
            format!("{what}: nest {number} of seed {seed}: {nest:#?}\n{schedule}\n{verified:?}")
        };
        match &verified {
            Ok(()) => {
                assert!(!is_wrong(&nest), "{}", place("accepted and wrong"));
                tally.accepted += 1;
                run(&nest, &program, &schedule)?;
            }
            Err(DirectiveError::Dependence { .. }) => match is_wrong(&nest) {
                true => tally.wrong += 1,
                false => {
                    assert!(holds_barrier(&nest.nodes), "{}", place("refused and right"));
                    tally.strict += 1;
                }
            },
            Err(_) => tally.unproved += 1,
        }
    }
    Ok(tally)
}

/// Verifies random nests without running them.
///
/// # Errors
/// A kernel that cannot be described.
pub fn verify_nests(seed: u64, count: usize) -> kiln::Result<Tally> {
    each_nest(seed, count, |_, _, _| Ok(()))
}

fn random_nests(jit: &Jit) -> Outcome {
    let (mut staged, mut copied_out, mut changed, mut nests) = (0, 0, 0, 0);
    let mut numbers = Numbers(0x9e6c_63d0_76cc_4191);
    each_nest(0x2545_f491_4f6c_dd1d, 60, |nest, program, schedule| {
        let mut wanted = nest.arrays();
        execute(&nest.nodes, &mut Vec::new(), &mut wanted);
        run(jit, nest, program, schedule, &wanted)?;
        let (mut transformed, count) = transformed(&mut numbers, program, schedule, &nest.known());
        nests += 1;
        // Each is several times as large as what it was: a third of them is what assemblers have time for.
        if count > 0 && nests % 3 == 0 {
            changed += count;
            // Staged, too, where that is possible.
            let inner = transformed.loops.len() - 1;
            let shared = Slices::default().with(2);
            let before = std::mem::replace(&mut transformed.loops[inner].shared, shared);
            if program.verify(&transformed, &nest.known()).is_err() {
                transformed.loops[inner].shared = before;
            }
            run(jit, nest, program, &transformed, &wanted)?;
        }
        for (number, array) in
            (0..schedule.loops.len()).flat_map(|number| (0..3).map(move |array| (number, array)))
        {
            let mut schedule = schedule.clone();
            schedule.loops[number].shared = Slices::default().with(array);
            if program.verify(&schedule, &nest.known()).is_ok() {
                staged += 1;
                run(jit, nest, program, &schedule, &wanted)?;
            }
            schedule.loops[number].shared = Slices::default();
            schedule.loops[number].copied_out = Slices::default().with(array);
            if program.verify(&schedule, &nest.known()).is_ok() {
                copied_out += 1;
                run(jit, nest, program, &schedule, &wanted)?;
            }
        }
        Ok(())
    })?;
    assert!(staged >= 10, "{staged} staged");
    assert!(copied_out >= 10, "{copied_out} copied out");
    assert!(changed >= 15, "{changed} transformations");
    Ok(())
}

fn random_computed_nests(jit: &Jit) -> Outcome {
    let (accepted, refused) = computed::nests(jit, 0x1f83_d9ab_fb41_bd6b, 120)?;
    assert!(
        accepted >= 40 && refused >= 20,
        "{accepted} accepted, {refused} refused"
    );
    Ok(())
}

fn random_nests_with_arrays(jit: &Jit) -> Outcome {
    let (accepted, refused) = arrays::nests(jit, 0x510e_527f_ade6_82d1, 400)?;
    assert!(
        accepted >= 40 && refused >= 40,
        "{accepted} accepted, {refused} refused"
    );
    Ok(())
}

/// Runs a nest under a schedule: it gives what the sequential program does.
fn run(
    jit: &Jit,
    nest: &Nest,
    program: &Program,
    schedule: &Schedule,
    wanted: &[Vec<u32>; 3],
) -> kiln::Result<()> {
    let [a, b, c] = nest.arrays();
    let (mut a, mut b, c) = (jit.upload(&a)?, jit.upload(&b)?, jit.upload(&c)?);
    let scheduled = program.apply_for(schedule, &nest.known())?;
    jit.launch(
        scheduled.kernel(),
        scheduled.grid(),
        scheduled.block(),
        args!(&mut a, &mut b, &c),
    )?;
    let got = [a.to_vec()?, b.to_vec()?, c.to_vec()?];
    assert_eq!(&got, wanted, "{nest:#?}\n{schedule}");
    Ok(())
}
