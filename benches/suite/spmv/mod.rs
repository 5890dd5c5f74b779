//! A sparse matrix in compressed rows times a vector, three ways ("Scalable Parallel Programming with CUDA", figures
//! 7 to 9, and Bell and Garland 2009): a thread a row; the same with the block's part of the vector in shared
//! memory; a warp a row. Of two matrices: a mesh of 27 neighbours, and one whose rows' lengths follow a power law.

use kiln::prelude::*;

use crate::data::{Random, close};
use crate::{Benchmark, Bound, Checked, Launch, Launcher, Size, Workload};

const TWIN: &str = include_str!("twin.cu");

pub const MESH_SCALAR: Benchmark = Benchmark {
    name: "spmv mesh, a thread a row",
    bound: Bound::Gather,
    source: include_str!("mod.rs"),
    twin: TWIN,
    make: |jit, size| Spmv::boxed(jit, Way::Scalar, mesh(size)),
};

pub const MESH_CACHED: Benchmark = Benchmark {
    name: "spmv mesh, cached",
    bound: Bound::Gather,
    source: include_str!("mod.rs"),
    twin: TWIN,
    make: |jit, size| Spmv::boxed(jit, Way::Cached, mesh(size)),
};

pub const MESH_WARP: Benchmark = Benchmark {
    name: "spmv mesh, a warp a row",
    bound: Bound::Gather,
    source: include_str!("mod.rs"),
    twin: TWIN,
    make: |jit, size| Spmv::boxed(jit, Way::Warp, mesh(size)),
};

pub const POWER_SCALAR: Benchmark = Benchmark {
    name: "spmv power law, a thread a row",
    bound: Bound::Gather,
    source: include_str!("mod.rs"),
    twin: TWIN,
    make: |jit, size| Spmv::boxed(jit, Way::Scalar, power_law(size)),
};

pub const POWER_CACHED: Benchmark = Benchmark {
    name: "spmv power law, cached",
    bound: Bound::Gather,
    source: include_str!("mod.rs"),
    twin: TWIN,
    make: |jit, size| Spmv::boxed(jit, Way::Cached, power_law(size)),
};

pub const POWER_WARP: Benchmark = Benchmark {
    name: "spmv power law, a warp a row",
    bound: Bound::Gather,
    source: include_str!("mod.rs"),
    twin: TWIN,
    make: |jit, size| Spmv::boxed(jit, Way::Warp, power_law(size)),
};

const BLOCK: usize = 128;

#[kernel]
fn scalar(rows: &[u32], columns: &[u32], values: &[f32], x: &[f32], y: &mut [f32]) {
    let row = global_id().x;
    if row < y.len() {
        let mut sum = 0.0;
        for at in rows[row] as usize..rows[row + 1] as usize {
            sum += values[at] * x[columns[at] as usize];
        }
        y[row] = sum;
    }
}

#[kernel]
fn cached(rows: &[u32], columns: &[u32], values: &[f32], x: &[f32], y: &mut [f32]) {
    let part = shared!([f32; BLOCK]);
    let first = block_idx().x * BLOCK;
    let row = first + thread_idx().x;
    if row < y.len() {
        part[thread_idx().x] = x[row];
    }
    barrier();
    if row < y.len() {
        let mut sum = 0.0;
        for at in rows[row] as usize..rows[row + 1] as usize {
            let column = columns[at] as usize;
            let near = column >= first && column < first + BLOCK;
            sum += values[at]
                * if near {
                    part[column - first]
                } else {
                    x[column]
                };
        }
        y[row] = sum;
    }
}

#[kernel]
fn warp(rows: &[u32], columns: &[u32], values: &[f32], x: &[f32], y: &mut [f32]) {
    let (row, lane) = (global_id().x / 32, thread_idx().x % 32);
    if row < y.len() {
        let (first, end) = (rows[row] as usize, rows[row + 1] as usize);
        let mut sum = 0.0;
        for at in (first + lane..end).step_by(32) {
            sum += values[at] * x[columns[at] as usize];
        }
        for apart in [16, 8, 4, 2, 1] {
            sum += shuffle_down(FULL_MASK, sum, apart, 32);
        }
        if lane == 0 {
            y[row] = sum;
        }
    }
}

/// A matrix in compressed rows.
struct Matrix {
    rows: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<f32>,
}

impl Matrix {
    /// Of rows that each say their columns.
    fn of(rows: usize, mut row: impl FnMut(usize, &mut Vec<u32>)) -> Matrix {
        let (mut ends, mut columns) = (vec![0], Vec::new());
        for i in 0..rows {
            row(i, &mut columns);
            ends.push(columns.len() as u32);
        }
        let values = Random::new(9).units(columns.len());
        Matrix {
            rows: ends,
            columns,
            values,
        }
    }
}

/// A cube of points, each with those around it.
fn mesh(size: Size) -> Matrix {
    let side: usize = size.of(7, 32, 161);
    let near = |at: usize| at.saturating_sub(1)..(at + 2).min(side);
    Matrix::of(side * side * side, |row, columns| {
        let (x, y, z) = (row % side, row / side % side, row / side / side);
        for (z, y) in near(z).flat_map(|z| near(y).map(move |y| (z, y))) {
            columns.extend(near(x).map(|x| ((z * side + y) * side + x) as u32));
        }
    })
}

/// Rows of 1 to 4,096 columns, half as many of each length as of half of it.
fn power_law(size: Size) -> Matrix {
    let rows = size.of(300, 1 << 15, 1 << 20);
    let mut random = Random::new(8);
    Matrix::of(rows, |_, columns| {
        let most = 1 << random.next().trailing_zeros().min(12);
        let length = (most + random.below(most)).min(rows as u32);
        let first = columns.len();
        columns.extend((0..length).map(|_| random.below(rows as u32)));
        columns[first..].sort_unstable();
    })
}

#[derive(Copy, Clone)]
enum Way {
    Scalar,
    Cached,
    Warp,
}

struct Spmv {
    way: Way,
    rows: Buffer<u32>,
    columns: Buffer<u32>,
    values: Buffer<f32>,
    x: Buffer<f32>,
    y: Buffer<f32>,
    host: (Matrix, Vec<f32>),
}

impl Spmv {
    fn boxed(jit: &Jit, way: Way, matrix: Matrix) -> kiln::Result<Box<dyn Workload>> {
        let n = matrix.rows.len() - 1;
        let x = Random::new(10).units(n);
        Ok(Box::new(Spmv {
            way,
            rows: jit.upload(&matrix.rows)?,
            columns: jit.upload(&matrix.columns)?,
            values: jit.upload(&matrix.values)?,
            x: jit.upload(&x)?,
            y: jit.zeros(n)?,
            host: (matrix, x),
        }))
    }
}

impl Workload for Spmv {
    fn run(&mut self, launcher: &mut dyn Launcher) -> kiln::Result<()> {
        let n = self.y.len();
        let (kernel, twin, threads): (&dyn kiln::core::front::AsKernel, _, _) = match self.way {
            Way::Scalar => (&scalar, "scalar", n),
            Way::Cached => (&cached, "cached", n),
            Way::Warp => (&warp, "warp", 32 * n),
        };
        launcher.launch(&Launch {
            kernel,
            twin,
            config: LaunchConfig::new(threads.div_ceil(BLOCK), BLOCK),
            args: args!(
                &self.rows,
                &self.columns,
                &self.values,
                &self.x,
                &mut self.y
            ),
            lengths: &[n],
        })
    }

    fn check(&mut self) -> Checked {
        let (matrix, x) = &self.host;
        let row = |row: &[u32]| -> f32 {
            let all = row[0] as usize..row[1] as usize;
            let products = all.map(|at| matrix.values[at] * x[matrix.columns[at] as usize]);
            products.sum()
        };
        let wanted: Vec<f32> = matrix.rows.windows(2).map(row).collect();
        close(&self.y.to_vec()?, &wanted, 1e-4)
    }
}
