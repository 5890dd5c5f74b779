//! A matrix as the product of a lower and an upper triangle, in its own place and without pivots (Rodinia's lud): for
//! each block of the diagonal, that block, its row and column, and the rest, a launch each.

use kiln::prelude::*;

use crate::data::{Random, close};
use crate::{Benchmark, Bound, Checked, Launch, Launcher, Size, Workload};

pub const LUD: Benchmark = benchmark("lud", |jit, size| {
    Lud::boxed(jit, size.of(3, 16, 512) * TILE)
});

pub const REMAINDER: Benchmark = benchmark("lud, remainder", |jit, size| {
    Lud::boxed(jit, size.of(37, 251, 4089))
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

const TILE: usize = 16;

/// The block of the diagonal at `at`. One block of 16 threads. What a tile has beyond the matrix is
/// computed, too, and not stored; nothing of the matrix needs it.
#[kernel]
fn diagonal(m: &mut [f32], side: u32, at: u32) {
    let tile = shared!([[f32; TILE]; TILE]);
    let (side, tx) = (side as usize, thread_idx().x);
    let corner = at as usize * side + at as usize;
    let left = side - at as usize;
    for i in 0..TILE {
        tile[i][tx] = if i < left && tx < left {
            m[corner + i * side + tx]
        } else {
            0.0
        };
    }
    barrier();
    for i in 0..TILE - 1 {
        if tx > i {
            for j in 0..i {
                tile[tx][i] -= tile[tx][j] * tile[j][i];
            }
            tile[tx][i] /= tile[i][i];
        }
        barrier();
        if tx > i {
            for j in 0..i + 1 {
                tile[i + 1][tx] -= tile[i + 1][j] * tile[j][tx];
            }
        }
        barrier();
    }
    // Row 0 is what it was.
    for i in 1..TILE {
        if i < left && tx < left {
            m[corner + i * side + tx] = tile[i][tx];
        }
    }
}

/// The blocks to the right of the one at `at`, and those below it. Blocks of 32 threads, of which the first 16 have the
/// row and the others the column. The block at `at` is a whole one, as there are blocks behind it.
#[kernel]
fn perimeter(m: &mut [f32], side: u32, at: u32) {
    let pivot = shared!([[f32; TILE]; TILE]);
    let across = shared!([[f32; TILE]; TILE]);
    let down = shared!([[f32; TILE]; TILE]);
    let (side, tx, half) = (side as usize, thread_idx().x, TILE / 2);
    let corner = at as usize * side + at as usize;
    let apart = (block_idx().x + 1) * TILE;
    let (right, below) = (corner + apart, corner + apart * side);
    // Columns of the block to the right, and rows of the one below.
    let left = side - at as usize - apart;
    if tx < TILE {
        for i in 0..half {
            pivot[i][tx] = m[corner + i * side + tx];
        }
        for i in 0..TILE {
            let from = right + i * side + tx;
            across[i][tx] = if tx < left { m[from] } else { 0.0 };
        }
    } else {
        let column = tx - TILE;
        for i in half..TILE {
            pivot[i][column] = m[corner + i * side + column];
        }
        for i in 0..TILE {
            let from = below + i * side + column;
            down[i][column] = if i < left { m[from] } else { 0.0 };
        }
    }
    barrier();
    if tx < TILE {
        for i in 1..TILE {
            for j in 0..i {
                across[i][tx] -= pivot[i][j] * across[j][tx];
            }
        }
    } else {
        let row = tx - TILE;
        for i in 0..TILE {
            for j in 0..i {
                down[row][i] -= down[row][j] * pivot[j][i];
            }
            down[row][i] /= pivot[i][i];
        }
    }
    barrier();
    if tx < TILE {
        for i in 1..TILE {
            if tx < left {
                m[right + i * side + tx] = across[i][tx];
            }
        }
    } else {
        let column = tx - TILE;
        for i in 0..TILE {
            if i < left {
                m[below + i * side + column] = down[i][column];
            }
        }
    }
}

/// What is right of and below the block at `at`. Blocks of 16 x 16 threads.
#[kernel]
fn internal(m: &mut [f32], side: u32, at: u32) {
    let across = shared!([[f32; TILE]; TILE]);
    let down = shared!([[f32; TILE]; TILE]);
    let (side, at) = (side as usize, at as usize);
    let (tx, ty) = (thread_idx().x, thread_idx().y);
    let row = at + (block_idx().y + 1) * TILE + ty;
    let column = at + (block_idx().x + 1) * TILE + tx;
    across[ty][tx] = if column < side {
        m[(at + ty) * side + column]
    } else {
        0.0
    };
    down[ty][tx] = if row < side {
        m[row * side + at + tx]
    } else {
        0.0
    };
    barrier();
    let mut sum = 0.0;
    for i in 0..TILE {
        sum += down[ty][i] * across[i][tx];
    }
    if row < side && column < side {
        m[row * side + column] -= sum;
    }
}

struct Lud {
    side: usize,
    matrix: Buffer<f32>,
    host: Vec<f32>,
}

impl Lud {
    fn boxed(jit: &Jit, side: usize) -> kiln::Result<Box<dyn Workload>> {
        let mut random = Random::new(7);
        let mut host = random.units(side * side);
        // What has a large diagonal needs no pivots.
        for i in 0..side {
            host[i * side + i] += side as f32;
        }
        let matrix = jit.upload(&host)?;
        Ok(Box::new(Lud { side, matrix, host }))
    }
}

impl Workload for Lud {
    fn reset(&mut self, _: &mut dyn Launcher) -> kiln::Result<()> {
        self.matrix.write(&self.host)
    }

    fn run(&mut self, launcher: &mut dyn Launcher) -> kiln::Result<()> {
        let side = self.side as u32;
        for at in (0..self.side).step_by(TILE) {
            let rest = (self.side - at).div_ceil(TILE) - 1;
            let mut launch = |kernel, twin, config| {
                let args = args!(&mut self.matrix, side, at as u32);
                launcher.launch(&Launch {
                    kernel,
                    twin,
                    config,
                    args,
                    lengths: &[],
                })
            };
            launch(&diagonal, "diagonal", LaunchConfig::new(1, TILE))?;
            if rest > 0 {
                launch(&perimeter, "perimeter", LaunchConfig::new(rest, 2 * TILE))?;
                launch(
                    &internal,
                    "internal",
                    LaunchConfig::new((rest, rest), (TILE, TILE)),
                )?;
            }
        }
        Ok(())
    }

    fn check(&mut self) -> Checked {
        let (side, found) = (self.side, self.matrix.to_vec()?);
        for row in (0..side).step_by(side.div_ceil(48)) {
            let mut product = vec![0.0; side];
            for i in 0..=row {
                let lower = if i == row {
                    1.0
                } else {
                    f64::from(found[row * side + i])
                };
                let upper = &found[i * side..][..side];
                for (sum, upper) in product[i..].iter_mut().zip(&upper[i..]) {
                    *sum += lower * f64::from(*upper);
                }
            }
            let product: Vec<f32> = product.into_iter().map(|sum| sum as f32).collect();
            close(&product, &self.host[row * side..][..side], 1e-3)?;
        }
        Ok(())
    }
}
