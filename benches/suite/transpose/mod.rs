//! A matrix with its rows as columns, by 32 x 32 tiles in shared memory whose rows are one element longer, so that what a
//! warp reads of a column lies in 32 banks (Ruetsch and Micikevicius, "Optimizing Matrix Transpose in CUDA", 2009).

pub(crate) mod directed;

use kiln::prelude::*;

use crate::data::{Random, equal};
use crate::{Benchmark, Bound, Checked, Launch, Launcher, Workload};

pub const TRANSPOSE: Benchmark = Benchmark {
    name: "transpose",
    bound: Bound::Memory,
    source: include_str!("mod.rs"),
    twin: include_str!("twin.cu"),
    make: |jit, size| {
        let (rows, columns) = size.of((45, 70), (1024, 1024), (8192, 8192));
        let host = Random::new(21).units(rows * columns);
        Ok(Box::new(Transpose {
            size: (rows, columns),
            from: jit.upload(&host)?,
            to: jit.zeros(rows * columns)?,
            host,
        }))
    },
};

const TILE: usize = 32;
/// Rows of a block of threads.
const ROWS: usize = 8;

#[kernel]
fn transpose(from: &[f32], to: &mut [f32], rows: u32, columns: u32) {
    let tile = shared!([[f32; TILE + 1]; TILE]);
    let (rows, columns) = (rows as usize, columns as usize);
    let (tx, ty) = (thread_idx().x, thread_idx().y);
    let (column, row) = (block_idx().x * TILE + tx, block_idx().y * TILE + ty);
    #[unroll]
    for part in (0..TILE).step_by(ROWS) {
        if row + part < rows && column < columns {
            tile[ty + part][tx] = from[(row + part) * columns + column];
        }
    }
    barrier();
    let (column, row) = (block_idx().y * TILE + tx, block_idx().x * TILE + ty);
    #[unroll]
    for part in (0..TILE).step_by(ROWS) {
        if row + part < columns && column < rows {
            to[(row + part) * rows + column] = tile[tx][ty + part];
        }
    }
}

struct Transpose {
    size: (usize, usize),
    from: Buffer<f32>,
    to: Buffer<f32>,
    host: Vec<f32>,
}

impl Workload for Transpose {
    fn run(&mut self, launcher: &mut dyn Launcher) -> kiln::Result<()> {
        let (rows, columns) = self.size;
        let grid = (columns.div_ceil(TILE), rows.div_ceil(TILE));
        launcher.launch(&Launch {
            kernel: &transpose,
            twin: "transpose",
            config: LaunchConfig::new(grid, (TILE, ROWS)),
            args: args!(&self.from, &mut self.to, rows as u32, columns as u32),
            lengths: &[],
        })
    }

    fn check(&mut self) -> Checked {
        let (rows, columns) = self.size;
        let found = self.to.to_vec()?;
        for column in (0..columns).step_by(columns.div_ceil(256)) {
            let wanted: Vec<f32> = (0..rows)
                .map(|row| self.host[row * columns + column])
                .collect();
            equal(&found[column * rows..][..rows], &wanted)?;
        }
        Ok(())
    }
}
