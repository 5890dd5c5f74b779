//! `c = a * b` of `f32`, three ways: an element a thread from global memory; 16 x 16 tiles in shared memory (CUDA
//! guide, "Shared Memory"); tiles of 128 x 128 whose threads each have 8 x 8 elements in registers.

pub(crate) mod directed;
pub(crate) mod steps;

use kiln::prelude::*;

use crate::data::{Random, close};
use crate::{Benchmark, Bound, Checked, Launch, Launcher, Size, Workload};

pub const NAIVE: Benchmark = benchmark("matmul naive", |jit, size| {
    Matmul::boxed(jit, Way::Naive, whole(size, 16))
});

pub const TILED: Benchmark = benchmark("matmul tiled", |jit, size| {
    Matmul::boxed(jit, Way::Tiled, whole(size, SIDE as u32))
});

pub const REGISTERS: Benchmark = benchmark("matmul registers", |jit, size| {
    Matmul::boxed(jit, Way::Registers, whole(size, TILE as u32))
});

pub const NAIVE_REMAINDER: Benchmark = benchmark("matmul naive, remainder", |jit, size| {
    Matmul::boxed(jit, Way::Naive, with_remainder(size))
});

pub const TILED_REMAINDER: Benchmark = benchmark("matmul tiled, remainder", |jit, size| {
    Matmul::boxed(jit, Way::Tiled, with_remainder(size))
});

pub const REGISTERS_REMAINDER: Benchmark = benchmark("matmul registers, remainder", |jit, size| {
    Matmul::boxed(jit, Way::Registers, with_remainder(size))
});

const fn benchmark(
    name: &'static str,
    make: fn(&Jit, Size) -> kiln::Result<Box<dyn Workload>>,
) -> Benchmark {
    Benchmark {
        name,
        bound: Bound::Arithmetic,
        source: include_str!("mod.rs"),
        twin: include_str!("twin.cu"),
        make,
    }
}

/// Rows of `a` and `c`, columns of `b` and `c`, and what is added up: all of them whole tiles.
fn whole(size: Size, tile: u32) -> (u32, u32, u32) {
    size.of((tile, tile, 32), (256, 256, 256), (4096, 4096, 4096))
}

/// None a multiple of a tile's side.
fn with_remainder(size: Size) -> (u32, u32, u32) {
    size.of((37, 41, 19), (250, 251, 249), (4001, 3003, 2005))
}

#[kernel]
fn naive(a: &[f32], b: &[f32], c: &mut [f32], m: u32, n: u32, k: u32) {
    let (m, n, k) = (m as usize, n as usize, k as usize);
    let (row, column) = (global_id().y, global_id().x);
    if row < m && column < n {
        let mut sum = 0.0;
        for i in 0..k {
            sum += a[row * k + i] * b[i * n + column];
        }
        c[row * n + column] = sum;
    }
}

const SIDE: usize = 16;

#[kernel]
fn tiled(a: &[f32], b: &[f32], c: &mut [f32], m: u32, n: u32, k: u32) {
    let (m, n, k) = (m as usize, n as usize, k as usize);
    let a_tile = shared!([[f32; SIDE]; SIDE]);
    let b_tile = shared!([[f32; SIDE]; SIDE]);
    let (tx, ty) = (thread_idx().x, thread_idx().y);
    let (row, column) = (global_id().y, global_id().x);
    let mut sum = 0.0;
    for first in (0..k).step_by(SIDE) {
        let (ka, kb) = (first + tx, first + ty);
        a_tile[ty][tx] = if row < m && ka < k {
            a[row * k + ka]
        } else {
            0.0
        };
        b_tile[ty][tx] = if kb < k && column < n {
            b[kb * n + column]
        } else {
            0.0
        };
        barrier();
        for i in 0..SIDE {
            sum += a_tile[ty][i] * b_tile[i][tx];
        }
        barrier();
    }
    if row < m && column < n {
        c[row * n + column] = sum;
    }
}

/// Rows and columns of a block's tile.
const TILE: usize = 128;
/// Rows and columns of a thread's.
const OWN: usize = 8;
/// How much of `k` a tile has.
const DEPTH: usize = 8;

/// Blocks of 16 x 16 threads.
#[kernel]
fn registers(a: &[f32], b: &[f32], c: &mut [f32], m: u32, n: u32, k: u32) {
    let (m, n, k) = (m as usize, n as usize, k as usize);
    let a_tile = shared!([[f32; TILE]; DEPTH]);
    let b_tile = shared!([[f32; TILE]; DEPTH]);
    let (tx, ty) = (thread_idx().x, thread_idx().y);
    let thread = ty * 16 + tx;
    let (first_row, first_column) = (block_idx().y * TILE, block_idx().x * TILE);
    let mut sums = [[0.0f32; OWN]; OWN];
    for first in (0..k).step_by(DEPTH) {
        // Each thread brings four of the 1,024 elements of both tiles.
        for part in 0..4 {
            let i = thread + part * 256;
            let (row, depth) = (i / DEPTH, i % DEPTH);
            let (from_row, from_depth) = (first_row + row, first + depth);
            let inside = from_row < m && from_depth < k;
            a_tile[depth][row] = if inside {
                a[from_row * k + from_depth]
            } else {
                0.0
            };
            let (depth, column) = (i / TILE, i % TILE);
            let (from_depth, from_column) = (first + depth, first_column + column);
            let inside = from_depth < k && from_column < n;
            b_tile[depth][column] = if inside {
                b[from_depth * n + from_column]
            } else {
                0.0
            };
        }
        barrier();
        for depth in 0..DEPTH {
            let mut a_part = [0.0f32; OWN];
            let mut b_part = [0.0f32; OWN];
            #[unroll]
            for i in 0..OWN {
                a_part[i] = a_tile[depth][ty * OWN + i];
                b_part[i] = b_tile[depth][tx * OWN + i];
            }
            #[unroll]
            for i in 0..OWN {
                #[unroll]
                for j in 0..OWN {
                    sums[i][j] += a_part[i] * b_part[j];
                }
            }
        }
        barrier();
    }
    #[unroll]
    for i in 0..OWN {
        #[unroll]
        for j in 0..OWN {
            let (row, column) = (first_row + ty * OWN + i, first_column + tx * OWN + j);
            if row < m && column < n {
                c[row * n + column] = sums[i][j];
            }
        }
    }
}

#[derive(Copy, Clone)]
enum Way {
    Naive,
    Tiled,
    Registers,
}

struct Matmul {
    way: Way,
    size: (u32, u32, u32),
    a: Buffer<f32>,
    b: Buffer<f32>,
    c: Buffer<f32>,
    host: (Vec<f32>, Vec<f32>),
}

impl Matmul {
    fn boxed(jit: &Jit, way: Way, size: (u32, u32, u32)) -> kiln::Result<Box<dyn Workload>> {
        let (m, n, k) = (size.0 as usize, size.1 as usize, size.2 as usize);
        let mut random = Random::new(3);
        let (a, b) = (random.units(m * k), random.units(k * n));
        Ok(Box::new(Matmul {
            way,
            size,
            a: jit.upload(&a)?,
            b: jit.upload(&b)?,
            c: jit.zeros(m * n)?,
            host: (a, b),
        }))
    }
}

impl Workload for Matmul {
    fn run(&mut self, launcher: &mut dyn Launcher) -> kiln::Result<()> {
        let (m, n, k) = self.size;
        let (kernel, twin, tile): (&dyn kiln::core::front::AsKernel, _, u32) = match self.way {
            Way::Naive => (&naive, "naive", 16),
            Way::Tiled => (&tiled, "tiled", SIDE as u32),
            Way::Registers => (&registers, "registers", TILE as u32),
        };
        launcher.launch(&Launch {
            kernel,
            twin,
            config: LaunchConfig::new((n.div_ceil(tile), m.div_ceil(tile)), (16, 16)),
            args: args!(&self.a, &self.b, &mut self.c, m, n, k),
            lengths: &[],
        })
    }

    fn check(&mut self) -> Checked {
        let (m, n, k) = (
            self.size.0 as usize,
            self.size.1 as usize,
            self.size.2 as usize,
        );
        let (a, b) = &self.host;
        let found = self.c.to_vec()?;
        // Rows that are in all tiles of a small matrix, and far apart in a large one.
        for row in (0..m).step_by(m.div_ceil(64)) {
            let mut wanted = vec![0.0; n];
            for (factor, of_b) in a[row * k..][..k].iter().zip(b.chunks_exact(n)) {
                for (sum, element) in wanted.iter_mut().zip(of_b) {
                    *sum += factor * element;
                }
            }
            close(&found[row * n..][..n], &wanted, 1e-4)?;
        }
        Ok(())
    }
}
