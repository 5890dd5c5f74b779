//! Alignment of two sequences (Needleman and Wunsch 1970; Rodinia's nw): a table whose cells need those above, to
//! the left and diagonal, in tiles of 16 x 16 along the anti-diagonals, a launch each.

use kiln::prelude::*;

use crate::data::{Random, equal};
use crate::{Benchmark, Bound, Checked, Launch, Launcher, Size, Workload};

pub const NW: Benchmark = benchmark("nw", |jit, size| {
    Nw::boxed(jit, size.of(4, 64, 1024) * TILE)
});

pub const REMAINDER: Benchmark = benchmark("nw, remainder", |jit, size| {
    Nw::boxed(jit, size.of(37, 1001, 8185))
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
const PENALTY: i32 = 10;

#[device_fn]
fn max3(a: i32, b: i32, c: i32) -> i32 {
    a.max(b).max(c)
}

/// The tiles of an anti-diagonal, the first of which is in the column `first`. Blocks of 16 threads. What a tile has beyond
/// the table is computed, too, and not stored; no cell of the table needs it.
#[kernel]
fn diagonal(worth: &[i32], scores: &mut [i32], side: u32, penalty: i32, number: u32, first: u32) {
    let cells = shared!([[i32; TILE + 1]; TILE + 1]);
    let values = shared!([[i32; TILE]; TILE]);
    let (side, tx) = (side as usize, thread_idx().x);
    let tile_column = first as usize + block_idx().x;
    let tile_row = number as usize - tile_column;
    // The cell above and to the left of the tile.
    let corner = tile_row * TILE * side + tile_column * TILE;
    // Rows and columns of the table in the tile.
    let (rows, columns) = (side - 1 - tile_row * TILE, side - 1 - tile_column * TILE);
    if tx == 0 {
        cells[0][0] = scores[corner];
    }
    for row in 0..TILE {
        values[row][tx] = if row < rows && tx < columns {
            worth[corner + (row + 1) * side + tx + 1]
        } else {
            0
        };
    }
    cells[tx + 1][0] = if tx < rows {
        scores[corner + (tx + 1) * side]
    } else {
        0
    };
    cells[0][tx + 1] = if tx < columns {
        scores[corner + tx + 1]
    } else {
        0
    };
    barrier();
    for step in 0..TILE {
        if tx <= step {
            let (x, y) = (tx + 1, step - tx + 1);
            cells[y][x] = max3(
                cells[y - 1][x - 1] + values[y - 1][x - 1],
                cells[y][x - 1] - penalty,
                cells[y - 1][x] - penalty,
            );
        }
        barrier();
    }
    for step in (0..TILE - 1).rev() {
        if tx <= step {
            let (x, y) = (tx + TILE - step, TILE - tx);
            cells[y][x] = max3(
                cells[y - 1][x - 1] + values[y - 1][x - 1],
                cells[y][x - 1] - penalty,
                cells[y - 1][x] - penalty,
            );
        }
        barrier();
    }
    for row in 0..TILE {
        if row < rows && tx < columns {
            scores[corner + (row + 1) * side + tx + 1] = cells[row + 1][tx + 1];
        }
    }
}

struct Nw {
    tiles: usize,
    side: usize,
    worth: Buffer<i32>,
    scores: Buffer<i32>,
    host: Vec<i32>,
}

impl Nw {
    /// Aligns two sequences of so many letters.
    fn boxed(jit: &Jit, letters: usize) -> kiln::Result<Box<dyn Workload>> {
        let side = letters + 1;
        let mut random = Random::new(5);
        // What a pair of letters is worth: -4 to 11, as in BLOSUM62.
        let worth: Vec<i32> = (0..side * side)
            .map(|_| random.below(16) as i32 - 4)
            .collect();
        let mut edge = vec![0; side * side];
        for i in 1..side {
            edge[i] = -PENALTY * i as i32;
            edge[i * side] = -PENALTY * i as i32;
        }
        Ok(Box::new(Nw {
            tiles: letters.div_ceil(TILE),
            side,
            worth: jit.upload(&worth)?,
            scores: jit.upload(&edge)?,
            host: worth,
        }))
    }
}

impl Workload for Nw {
    fn run(&mut self, launcher: &mut dyn Launcher) -> kiln::Result<()> {
        for number in 0..2 * self.tiles - 1 {
            let first = (number + 1).saturating_sub(self.tiles);
            let count = number.min(self.tiles - 1) + 1 - first;
            let (side, number, first) = (self.side as u32, number as u32, first as u32);
            launcher.launch(&Launch {
                kernel: &diagonal,
                twin: "diagonal",
                config: LaunchConfig::new(count, TILE),
                args: args!(&self.worth, &mut self.scores, side, PENALTY, number, first),
                lengths: &[],
            })?;
        }
        Ok(())
    }

    fn check(&mut self) -> Checked {
        let side = self.side;
        let mut wanted = vec![0; side * side];
        for i in 1..side {
            wanted[i] = -PENALTY * i as i32;
            wanted[i * side] = -PENALTY * i as i32;
        }
        for at in (1..side).flat_map(|row| (1..side).map(move |column| row * side + column)) {
            let paired = wanted[at - side - 1] + self.host[at];
            wanted[at] = paired
                .max(wanted[at - 1] - PENALTY)
                .max(wanted[at - side] - PENALTY);
        }
        equal(&self.scores.to_vec()?, &wanted)
    }
}
