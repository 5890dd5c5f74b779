//! Kernels by hand of what clauses of directives say, over the rows of a matrix: warps that have rows, one element of all, running
//! values, elements of a thread's own, ends that are apart. They have no twins in CUDA C++.

pub(crate) mod directed;

use kiln::core::args::Arg;
use kiln::core::front::AsKernel;
use kiln::prelude::*;

use crate::data::{Random, equal};
use crate::{Benchmark, Bound, Checked, Launch, Launcher, Size, Workload};

/// Threads of a block.
const BLOCK: usize = 256;
/// Bins of which each thread has some of its own.
const BINS: usize = 16;
/// Elements of a column that a thread counts.
const COUNTED: usize = 64;

/// The kernels by hand.
pub(crate) const BY_HAND: &[Benchmark] = &[
    by_hand("over_lane", |jit, size| Rows::boxed(jit, size, Way::Lanes)),
    by_hand("reduction", |jit, size| Rows::boxed(jit, size, Way::All)),
    by_hand("scan", |jit, size| Rows::boxed(jit, size, Way::Scan)),
    by_hand("privatize", |jit, size| Rows::boxed(jit, size, Way::Own)),
    by_hand("peel", |jit, size| Rows::boxed(jit, size, Way::Ends)),
];

const fn by_hand(
    name: &'static str,
    make: fn(&Jit, Size) -> kiln::Result<Box<dyn Workload>>,
) -> Benchmark {
    Benchmark {
        name,
        bound: Bound::Memory,
        source: include_str!("mod.rs"),
        twin: "",
        make,
    }
}

/// The sum of each row, by a warp.
#[kernel]
fn lanes(x: &[u32], y: &mut [u32], rows: u32, columns: u32) {
    let (rows, columns) = (rows as usize, columns as usize);
    let (row, lane) = (global_id().x / 32, thread_idx().x % 32);
    if row < rows {
        let mut sum = 0;
        for column in (lane..columns).step_by(32) {
            sum += x[row * columns + column];
        }
        let sum = warp_reduce_add(FULL_MASK, sum);
        if lane == 0 {
            y[row] += sum;
        }
    }
}

/// The sum of all elements.
#[kernel]
fn all(x: &[u32], y: &mut [u32], rows: u32, columns: u32) {
    let count = rows as usize * columns as usize;
    let each = count.div_ceil(grid_dim().x);
    let first = block_idx().x * each;
    let end = (first + each).min(count);
    let mut sum = 0;
    for i in (first + thread_idx().x..end).step_by(BLOCK) {
        sum += x[i];
    }
    let sum = block_reduce_to_first(sum, |a, b| a + b);
    if thread_idx().x == 0 {
        atomic_add(&mut y[0], sum);
    }
}

/// The sums of each row up to each element, by a block.
#[kernel]
fn scan(x: &[u32], y: &mut [u32], rows: u32, columns: u32) {
    let (row, columns) = (block_idx().x, columns as usize);
    if row < rows as usize {
        let mut before = 0;
        for first in (0..columns).step_by(BLOCK) {
            let column = first + thread_idx().x;
            let value = if column < columns {
                x[row * columns + column]
            } else {
                0
            };
            let sum = before + block_inclusive_scan(value, |a, b| a + b);
            if column < columns {
                y[row * columns + column] = sum;
            }
            let last = shared!([u32; 1]);
            barrier();
            if thread_idx().x == BLOCK - 1 {
                last[0] = sum;
            }
            barrier();
            before = last[0];
        }
    }
}

/// The largest of a column's counts, by a thread.
#[kernel]
fn own(x: &[u32], y: &mut [u32], rows: u32, columns: u32, _bins: &mut [u32]) {
    let (rows, columns) = (rows as usize, columns as usize);
    let column = global_id().x;
    if column < columns {
        let mut bins = [0u32; BINS];
        for row in 0..COUNTED.min(rows) {
            bins[x[row * columns + column] as usize % BINS] += 1;
        }
        let mut largest = 0;
        for bin in 0..BINS {
            largest = largest.max(bins[bin]);
        }
        y[column] = largest;
    }
}

/// A sum of each element and those above and below it, by a thread for each column.
#[kernel]
fn ends(x: &[u32], y: &mut [u32], rows: u32, columns: u32) {
    let (rows, columns) = (rows as usize, columns as usize);
    let column = global_id().x;
    if column < columns && rows > 1 {
        y[column] = 2 * x[column] + x[columns + column];
        for row in 1..rows - 1 {
            let at = row * columns + column;
            y[at] = x[at - columns] + 2 * x[at] + x[at + columns];
        }
        let at = (rows - 1) * columns + column;
        y[at] = x[at - columns] + 2 * x[at];
    }
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Way {
    Lanes,
    All,
    Scan,
    Own,
    Ends,
}

struct Rows {
    way: Way,
    rows: usize,
    columns: usize,
    host: Vec<u32>,
    x: Buffer<u32>,
    y: Buffer<u32>,
    /// What directives name, and memory of threads is in the place of.
    bins: Buffer<u32>,
}

impl Rows {
    fn boxed(jit: &Jit, size: Size, way: Way) -> kiln::Result<Box<dyn Workload>> {
        let (rows, columns) = size.of((21, 70), (1024, 1024), (8192, 8192));
        let host = Random::new(33).integers(rows * columns, 1000);
        let host: Vec<u32> = host.into_iter().map(|number| number as u32).collect();
        Ok(Box::new(Rows {
            way,
            rows,
            columns,
            x: jit.upload(&host)?,
            y: jit.zeros(rows * columns)?,
            bins: jit.zeros(BINS)?,
            host,
        }))
    }

    /// What comes of the input, as much of it as there is.
    fn wanted(&self) -> Vec<u32> {
        let (rows, columns) = (self.rows, self.columns);
        let row = |row: usize| &self.host[row * columns..][..columns];
        let column = |column: usize| self.host.iter().skip(column).step_by(columns);
        match self.way {
            Way::Lanes => (0..rows).map(|at| row(at).iter().sum()).collect(),
            Way::All => vec![self.host.iter().fold(0, |sum, x| sum.wrapping_add(*x))],
            Way::Scan => {
                let sums = (0..rows.min(64)).flat_map(|at| {
                    row(at).iter().scan(0, |sum, x| {
                        *sum += x;
                        Some(*sum)
                    })
                });
                sums.collect()
            }
            Way::Own => {
                let largest = |at: usize| {
                    let mut bins = [0; BINS];
                    let counted = column(at).take(COUNTED);
                    counted.for_each(|x| bins[*x as usize % BINS] += 1);
                    bins.into_iter().max().unwrap_or(0)
                };
                (0..columns).map(largest).collect()
            }
            Way::Ends => {
                let at = |at: usize| self.host.get(at).copied().unwrap_or(0);
                let above = |place: usize| place.checked_sub(columns).map_or(0, at);
                let sums = (0..rows * columns)
                    .map(|place| above(place) + 2 * at(place) + at(place + columns));
                sums.collect()
            }
        }
    }
}

impl Workload for Rows {
    fn reset(&mut self, _: &mut dyn Launcher) -> kiln::Result<()> {
        self.y.write(&vec![0; self.rows * self.columns])
    }

    fn run(&mut self, launcher: &mut dyn Launcher) -> kiln::Result<()> {
        let (rows, columns) = (self.rows, self.columns);
        let grid = match self.way {
            Way::Lanes => rows.div_ceil(BLOCK / 32),
            Way::All => directed::BLOCKS,
            Way::Scan => rows,
            Way::Own | Way::Ends => columns.div_ceil(BLOCK),
        };
        let kernel: &dyn AsKernel = match self.way {
            Way::Lanes => &lanes,
            Way::All => &all,
            Way::Scan => &scan,
            Way::Own => &own,
            Way::Ends => &ends,
        };
        let (x, y) = (&self.x, &mut self.y);
        let args: &[Arg<'_>] = match self.way {
            Way::Own => args!(x, y, rows as u32, columns as u32, &mut self.bins),
            _ => args!(x, y, rows as u32, columns as u32),
        };
        launcher.launch(&Launch {
            kernel,
            twin: "",
            config: LaunchConfig::new(grid, BLOCK),
            args,
            lengths: &[],
        })
    }

    fn check(&mut self) -> Checked {
        let wanted = self.wanted();
        let found = self.y.to_vec()?;
        equal(&found[..wanted.len()], &wanted)
    }
}
