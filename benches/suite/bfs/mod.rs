//! How far each node of a graph is from the first (Rodinia's bfs): a step of all that were reached last, then a step
//! that takes over what they reached, until there is nothing new.

use kiln::prelude::*;

use crate::data::{Random, equal};
use crate::{Benchmark, Bound, Checked, Launch, Launcher, Workload};

pub const BFS: Benchmark = Benchmark {
    name: "bfs",
    bound: Bound::Gather,
    source: include_str!("mod.rs"),
    twin: include_str!("twin.cu"),
    make: |jit, size| {
        let count = size.of(500, 1 << 16, 1 << 24);
        let mut random = Random::new(11);
        let (mut nodes, mut edges) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let node = Node {
                first: edges.len() as i32,
                count: 2 + random.below(9) as i32,
            };
            edges.extend((0..node.count).map(|_| random.below(count as u32) as i32));
            nodes.push(node);
        }
        Ok(Box::new(Bfs {
            nodes: jit.upload(&nodes)?,
            edges: jit.upload(&edges)?,
            flags: Flags {
                last: jit.zeros(count)?,
                next: jit.zeros(count)?,
                visited: jit.zeros(count)?,
            },
            costs: jit.zeros(count)?,
            more: jit.zeros(1)?,
            steps: steps(&nodes, &edges),
        }))
    },
};

const BLOCK: usize = 256;

/// Where the edges of a node are.
#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Node {
    first: i32,
    count: i32,
}

/// From the nodes that were reached last to those around them.
#[kernel]
fn reach(
    nodes: &[Node],
    edges: &[i32],
    last: &mut [bool],
    next: &mut [u8],
    visited: &[bool],
    costs: &mut [i32],
) {
    let i = global_id().x;
    if i < nodes.len() && last[i] {
        last[i] = false;
        let (node, cost) = (nodes[i], costs[i] + 1);
        for at in node.first..node.first + node.count {
            let to = edges[at as usize] as usize;
            if !visited[to] {
                // Several threads may write these, the same values all.
                atomic_store(&mut costs[to], cost, Ordering::Relaxed, Scope::Device);
                atomic_store(&mut next[to], 1, Ordering::Relaxed, Scope::Device);
            }
        }
    }
}

/// What was reached is what comes next.
#[kernel]
fn advance(last: &mut [bool], next: &mut [u8], visited: &mut [bool], more: &mut [u8]) {
    let i = global_id().x;
    if i < next.len() && next[i] != 0 {
        last[i] = true;
        visited[i] = true;
        atomic_store(&mut more[0], 1, Ordering::Relaxed, Scope::Device);
        next[i] = 0;
    }
}

struct Flags {
    last: Buffer<bool>,
    next: Buffer<u8>,
    visited: Buffer<bool>,
}

struct Bfs {
    nodes: Buffer<Node>,
    edges: Buffer<i32>,
    flags: Flags,
    costs: Buffer<i32>,
    more: Buffer<u8>,
    /// The distance of each node, as the host finds it.
    steps: Vec<i32>,
}

fn steps(nodes: &[Node], edges: &[i32]) -> Vec<i32> {
    let mut steps = vec![-1; nodes.len()];
    steps[0] = 0;
    let mut last = vec![0];
    while !last.is_empty() {
        let mut next = Vec::new();
        for from in last {
            let Node { first, count } = nodes[from];
            for &to in &edges[first as usize..][..count as usize] {
                if steps[to as usize] < 0 {
                    steps[to as usize] = steps[from] + 1;
                    next.push(to as usize);
                }
            }
        }
        last = next;
    }
    steps
}

impl Workload for Bfs {
    fn reset(&mut self, _: &mut dyn Launcher) -> kiln::Result<()> {
        let n = self.nodes.len();
        let mut first = vec![false; n];
        self.flags.next.write(&vec![0; n])?;
        first[0] = true;
        self.flags.last.write(&first)?;
        self.flags.visited.write(&first)?;
        let mut costs = vec![-1; n];
        costs[0] = 0;
        self.costs.write(&costs)
    }

    fn again(&mut self, launcher: &mut dyn Launcher) -> kiln::Result<()> {
        self.reset(launcher)
    }

    fn run(&mut self, launcher: &mut dyn Launcher) -> kiln::Result<()> {
        let n = self.nodes.len();
        let config = LaunchConfig::new(n.div_ceil(BLOCK), BLOCK);
        let deepest = self.steps.iter().max().expect("there are nodes");
        let Flags {
            last,
            next,
            visited,
        } = &mut self.flags;
        // The host knows how many steps there are, so that no copy of a flag is in the time.
        for _ in 0..*deepest {
            launcher.launch(&Launch {
                kernel: &reach,
                twin: "reach",
                config,
                args: args!(
                    &self.nodes,
                    &self.edges,
                    &mut *last,
                    &mut *next,
                    &*visited,
                    &mut self.costs
                ),
                lengths: &[n],
            })?;
            launcher.launch(&Launch {
                kernel: &advance,
                twin: "advance",
                config,
                args: args!(&mut *last, &mut *next, &mut *visited, &mut self.more),
                lengths: &[n],
            })?;
        }
        Ok(())
    }

    fn check(&mut self) -> Checked {
        equal(&self.costs.to_vec()?, &self.steps)
    }
}
