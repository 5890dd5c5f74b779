//! Random nests of which the first one writes what the second one reads, with blocks that compute it: what the second one
//! writes is what the sequential program does.

use kiln::directives::{
    DirectiveError, OverBlocks, OverThreads, Partition, Program, Schedule, Slices,
};
use kiln::prelude::*;

use super::{
    Counted, Element, Make, Nest, Node, Numbers, Sum, each_element, execute, is_wrong,
    shift_indices,
};

/// Where rows of the array begin that the first nest writes and the second one reads.
struct Shape {
    extents: Vec<i64>,
    strides: Vec<i64>,
}

impl Shape {
    fn random(numbers: &mut Numbers) -> Shape {
        let dims = 1 + numbers.below(3);
        let extents: Vec<i64> = (0..dims).map(|_| numbers.within(1, 5)).collect();
        let mut stride = if numbers.one_in(6) { 2 } else { 1 };
        let mut strides = Vec::new();
        for extent in extents.iter().rev() {
            strides.push(stride);
            // Now and then rows have a gap between them, or lie one in the other.
            stride = stride * extent + [0, 0, 0, 1, 2, -1][numbers.below(6) as usize];
        }
        strides.reverse();
        Shape { extents, strides }
    }

    /// The dimensions in some order.
    fn order(&self, numbers: &mut Numbers) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.extents.len()).collect();
        for place in 1..order.len() {
            order.swap(place, numbers.below(place as u64 + 1) as usize);
        }
        order
    }

    /// The loops of the first nest around their statement.
    fn producer(&self, numbers: &mut Numbers) -> Node {
        let order = self.order(numbers);
        let index = Sum {
            factors: order.iter().map(|&dim| self.strides[dim]).collect(),
            number: 0,
        };
        let mut nodes = vec![Node::Store {
            to: Element { array: 0, index },
            from: (0..1 + numbers.below(2))
                .map(|_| Element {
                    array: 2,
                    index: Sum::random(numbers, order.len()),
                })
                .collect(),
            number: numbers.below(100) as u32,
        }];
        for (depth, &dim) in order.iter().enumerate().rev() {
            let extent = self.extents[dim];
            let step = if numbers.one_in(4) { -1 } else { 1 };
            let [start, end] = if step > 0 {
                [0, extent]
            } else {
                [extent - 1, -1]
            };
            nodes = vec![Node::Loop(Counted {
                start,
                end: Sum {
                    factors: vec![0; depth],
                    number: end,
                },
                cap: None,
                step,
                partition: Partition::default(),
                jam: 1,
                body: nodes,
            })];
        }
        nodes.remove(0)
    }

    /// The loops of the second nest, of which some are distributed.
    fn consumer(&self, numbers: &mut Numbers, dims: [usize; 2]) -> Node {
        let order = self.order(numbers);
        let own = |along: &dyn Fn(usize) -> i64| Sum {
            factors: order.iter().map(|&dim| along(dim)).collect(),
            number: 0,
        };
        let has_halo = |dim: usize| self.extents[dim] > 2;
        let mut from = Vec::new();
        for _ in 0..1 + numbers.below(4) {
            let mut index = own(&|dim| self.strides[dim]);
            for (dim, stride) in self.strides.iter().enumerate() {
                if has_halo(dim) {
                    index.number += numbers.within(-1, 1) * stride;
                }
            }
            from.push(Element { array: 0, index });
        }
        let mut width = 1;
        let mut widths = vec![0; self.extents.len()];
        for (dim, extent) in self.extents.iter().enumerate().rev() {
            widths[dim] = width;
            width *= extent;
        }
        let to = Element {
            array: 1,
            index: own(&|dim| widths[dim]),
        };
        let number = numbers.below(100) as u32;
        let mut nodes = vec![Node::Store { to, from, number }];
        let partitions = partitions(numbers, order.len(), dims);
        for (depth, &dim) in order.iter().enumerate().rev() {
            let halo = i64::from(has_halo(dim));
            nodes = vec![Node::Loop(Counted {
                start: halo,
                end: Sum {
                    factors: vec![0; depth],
                    number: self.extents[dim] - halo,
                },
                cap: None,
                step: 1,
                partition: partitions[depth],
                jam: 1,
                body: nodes,
            })];
        }
        nodes.remove(0)
    }
}

/// How loops are distributed, no deeper than the grid is.
fn partitions(numbers: &mut Numbers, loops: usize, dims: [usize; 2]) -> Vec<Partition> {
    let mut levels = [0, 0];
    let mut next = || {
        let over_blocks =
            [None, Some(OverBlocks::Block), Some(OverBlocks::Cyclic)][numbers.below(3) as usize];
        let over_threads = levels[1] < dims[1] && !numbers.one_in(3);
        let partition = Partition {
            over_blocks: over_blocks.filter(|_| levels[0] < dims[0]),
            over_threads: over_threads.then_some(OverThreads::Threads),
        };
        levels[0] += usize::from(partition.over_blocks.is_some());
        levels[1] += usize::from(partition.over_threads.is_some());
        partition
    };
    (0..loops).map(|_| next()).collect()
}

fn random(numbers: &mut Numbers) -> Nest {
    let mut dims = || {
        (0..1 + numbers.below(2))
            .map(|_| 1 + numbers.below(3) as u32)
            .collect()
    };
    let (blocks, threads): (Vec<u32>, Vec<u32>) = (dims(), dims());
    let shape = Shape::random(numbers);
    let mut nodes = vec![shape.producer(numbers)];
    nodes.push(shape.consumer(numbers, [blocks.len(), threads.len()]));
    if numbers.one_in(8) {
        // Something else, that may be in the way.
        let mut make = Make {
            numbers,
            with_barriers: false,
            dims: [0, 0],
        };
        let place = make.numbers.below(3) as usize;
        let node = make.store(0);
        nodes.insert(place, node);
    }
    let mut ends = [(0, 0); 3];
    each_element(&nodes, &mut Vec::new(), &mut |element, indices| {
        let at = element.index.at(indices);
        let (low, high) = &mut ends[element.array];
        (*low, *high) = ((*low).min(at), (*high).max(at));
    });
    shift_indices(&mut nodes, ends.map(|(low, _)| -low));
    Nest {
        nodes,
        blocks,
        threads,
        lengths: ends.map(|(low, high)| high - low + 1),
    }
}

/// Random nests from a seed, of which those that are accepted give what the sequential program does; how many these are,
/// and how many are refused.
pub(super) fn nests(jit: &Jit, seed: u64, count: usize) -> kiln::Result<(usize, usize)> {
    let mut numbers = Numbers(seed);
    let (mut accepted, mut refused) = (0, 0);
    for number in 0..count {
        let nest = random(&mut numbers);
        let program = Program::of(&nest.region()?)?;
        let mut schedule = program.schedule(&nest.blocks, &nest.threads);
        // Any loop behind the first nest, and now and then iterations side by side.
        let loops = schedule.loops.len();
        let own = &mut schedule.loops[loops - 1 - numbers.below(loops as u64 / 2) as usize];
        own.computed = Slices::default().with(0);
        own.shared = own.computed;
        if numbers.one_in(4) {
            let inner = numbers.below(loops as u64 / 2) as usize;
            schedule.loops[loops - 1 - inner].jam = Some(2);
        }
        match program.verify(&schedule, &nest.known()) {
            Ok(()) => {
                run(jit, &nest, &program, &schedule).inspect_err(|_| {
                    println!("nest {number} of seed {seed:#x}: {nest:#?}\n{schedule}");
                })?;
                accepted += 1;
            }
            Err(
                DirectiveError::Computed { .. }
                | DirectiveError::Dependence { .. }
                | DirectiveError::Shared { .. }
                | DirectiveError::Barrier { .. }
                | DirectiveError::Transformation { .. },
            ) => refused += 1,
            Err(other) => panic!("nest {number} of seed {seed:#x}: {nest:#?}\n{schedule}\n{other}"),
        }
    }
    Ok((accepted, refused))
}

/// Runs an accepted nest: all but what blocks have computed is that of the sequential program.
fn run(jit: &Jit, nest: &Nest, program: &Program, schedule: &Schedule) -> kiln::Result<()> {
    let mut wanted = nest.arrays();
    execute(&nest.nodes, &mut Vec::new(), &mut wanted);
    let [a, b, c] = nest.arrays();
    let (mut a, mut b, c) = (jit.upload(&a)?, jit.upload(&b)?, jit.upload(&c)?);
    let scheduled = program.apply_for(schedule, &nest.known())?;
    let args = args!(&mut a, &mut b, &c);
    jit.launch(
        scheduled.kernel(),
        scheduled.grid(),
        scheduled.block(),
        args,
    )?;
    assert_eq!(b.to_vec()?, wanted[1], "{nest:#?}\n{schedule}");
    assert_eq!(a.to_vec()?, nest.arrays()[0], "{nest:#?}\n{schedule}");
    // The others keep the order without it.
    let computed = |node: &Node| match node {
        Node::Loop(held) => writes_first(&held.body),
        _ => false,
    };
    let mut rest = nest.clone();
    rest.nodes.retain(|node| !computed(node));
    assert!(!is_wrong(&rest), "{nest:#?}\n{schedule}");
    Ok(())
}

/// Whether the first array is written.
fn writes_first(nodes: &[Node]) -> bool {
    nodes.iter().any(|node| match node {
        Node::Loop(held) => writes_first(&held.body),
        Node::Store { to, .. } => to.array == 0,
        Node::Barrier | Node::Singular(_) => false,
    })
}
