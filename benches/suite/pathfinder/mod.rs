//! The cheapest way through a grid from the last row to the first, a step down and at most one aside at a time
//! (Rodinia's pathfinder): dynamic programming, several rows a launch in shared memory with a border that shrinks.

use std::cell::OnceCell;

use kiln::prelude::*;

use crate::data::{Random, equal};
use crate::{Benchmark, Bound, Checked, Launch, Launcher, Workload};

pub const PATHFINDER: Benchmark = Benchmark {
    name: "pathfinder",
    bound: Bound::Memory,
    source: include_str!("mod.rs"),
    twin: include_str!("twin.cu"),
    make: |jit, size| {
        let (columns, rows) = size.of((700, 33), (1 << 16, 64), (1 << 22, 101));
        let wall = Random::new(4).integers(columns * rows, 10);
        let first = &wall[..columns];
        Ok(Box::new(Pathfinder {
            columns,
            rows,
            wall: jit.upload(&wall)?,
            costs: [jit.upload(first)?, jit.upload(first)?],
            host: wall,
            wanted: OnceCell::new(),
        }))
    },
};

const BLOCK: usize = 256;
/// Rows of one launch.
const ROWS: usize = 20;

/// `rows` rows on from `from`, whose last row is `first - 1`.
#[kernel]
fn pathfinder(wall: &[i32], from: &[i32], to: &mut [i32], first: u32, rows: u32) {
    let (columns, rows) = (from.len() as i32, rows as i32);
    let costs = shared!([i32; BLOCK]);
    let next = shared!([i32; BLOCK]);
    let tx = thread_idx().x;
    // Blocks overlap by what each row takes from both ends.
    let width = BLOCK as i32 - 2 * rows;
    let column = width * block_idx().x as i32 - rows + tx as i32;
    let inside = column >= 0 && column < columns;
    let left = if column > 0 && tx > 0 { tx - 1 } else { tx };
    let right = if column < columns - 1 && tx < BLOCK - 1 {
        tx + 1
    } else {
        tx
    };
    if inside {
        costs[tx] = from[column as usize];
    }
    barrier();
    for row in 0..rows {
        let reached = tx as i32 > row && (tx as i32) < BLOCK as i32 - 1 - row;
        if reached && inside {
            let best = costs[left].min(costs[tx]).min(costs[right]);
            let at = (first as i32 + row) * columns + column;
            next[tx] = best + wall[at as usize];
        }
        barrier();
        if reached && inside {
            costs[tx] = next[tx];
        }
        barrier();
    }
    let own = tx as i32 >= rows && (tx as i32) < BLOCK as i32 - rows;
    if own && inside {
        to[column as usize] = costs[tx];
    }
}

struct Pathfinder {
    columns: usize,
    rows: usize,
    wall: Buffer<i32>,
    /// The costs to reach each column of a row, which is read, and of the one that is written.
    costs: [Buffer<i32>; 2],
    host: Vec<i32>,
    wanted: OnceCell<Vec<i32>>,
}

impl Pathfinder {
    /// What the cheapest way to each cell of the last row costs.
    fn on_host(&self) -> Vec<i32> {
        let mut costs = self.host[..self.columns].to_vec();
        for row in self.host.chunks(self.columns).skip(1) {
            let best = |i: usize| {
                let around = costs[i.saturating_sub(1)..(i + 2).min(costs.len())].iter();
                around.min().expect("a column has neighbours")
            };
            costs = (row.iter().enumerate())
                .map(|(i, cost)| best(i) + cost)
                .collect();
        }
        costs
    }
}

impl Workload for Pathfinder {
    fn reset(&mut self, _: &mut dyn Launcher) -> kiln::Result<()> {
        // Which of both has the result depends on the number of launches alone.
        self.costs[0].write(&self.host[..self.columns])
    }

    fn run(&mut self, launcher: &mut dyn Launcher) -> kiln::Result<()> {
        let [from, to] = &mut self.costs;
        let (mut from, mut to) = (from, to);
        for first in (1..self.rows).step_by(ROWS) {
            let rows = ROWS.min(self.rows - first);
            let width = BLOCK - 2 * rows;
            let grid = self.columns.div_ceil(width);
            launcher.launch(&Launch {
                kernel: &pathfinder,
                twin: "pathfinder",
                config: LaunchConfig::new(grid, BLOCK),
                args: args!(&self.wall, &*from, &mut *to, first as u32, rows as u32),
                lengths: &[self.columns],
            })?;
            (from, to) = (to, from);
        }
        Ok(())
    }

    fn check(&mut self) -> Checked {
        let wanted = self.wanted.get_or_init(|| self.on_host());
        let launches = (self.rows - 1).div_ceil(ROWS);
        equal(&self.costs[launches % 2].to_vec()?, wanted)
    }
}
